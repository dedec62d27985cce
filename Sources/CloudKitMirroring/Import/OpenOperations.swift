/// The operations of the open batch, whose reply was not received.
///
/// The batch is decoded when the first of its records is found, once for all records of a page.
final class OpenOperations {
  private let metadata: MirrorMetadata
  private lazy var batch = Result { try read() }

  init(_ metadata: MirrorMetadata) { self.metadata = metadata }

  /// The operation that saves a record; nil if the record is in no open batch.
  func operation(of record: RecordMetadata) throws -> CloudOperation? {
    guard record.sentKind == .save, let sequence = record.sequence, let batch = try batch.get(),
      batch.sequence == sequence
    else { return nil }
    return batch.operations[record.name]
  }

  private func read() throws -> (sequence: Int64, operations: [String: CloudOperation])? {
    try metadata.openBatch().map { open in
      let operations = try CloudBatch(encoded: open.payload).operations
      return (
        open.sequence,
        Dictionary(operations.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
      )
    }
  }
}
