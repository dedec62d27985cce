/// What the server may have received of a change.
package enum SentChange: Hashable, Sendable {
  package enum Operation: Hashable, Sendable {
    case save
    case delete
  }

  /// No batch contains the change.
  case nothing
  /// An open batch contains it; for a record, with the edited properties.
  case inBatch(Int64, Operation, properties: Set<String>)
  /// A batch with a save of it was abandoned without a reply.
  case doubtful

  /// Reads the columns of a row, or a pending change that a batch takes.
  package init(sequence: Int64?, kind: PendingKind, properties: Set<String> = []) {
    switch (sequence, kind) {
    case (let sequence?, .save): self = .inBatch(sequence, .save, properties: properties)
    case (let sequence?, .delete): self = .inBatch(sequence, .delete, properties: properties)
    case (nil, .save): self = .doubtful
    // A deletion is never in doubt: one without a reply is pending again.
    case (nil, .delete), (_, .nothing): self = .nothing
    }
  }

  /// The number of the open batch.
  package var sequence: Int64? {
    if case .inBatch(let sequence, _, _) = self { sequence } else { nil }
  }

  /// The operation that the server may have executed.
  package var kind: PendingKind {
    switch self {
    case .nothing: .nothing
    case .inBatch(_, .delete, _): .delete
    case .inBatch(_, .save, _), .doubtful: .save
    }
  }

  /// The properties in the open batch.
  package var properties: Set<String> {
    if case .inBatch(_, _, let properties) = self { properties } else { [] }
  }
}
