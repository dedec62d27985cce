/// The metadata of one edge of a many-to-many relationship.
package struct EdgeMetadata: ChangeMetadata, Hashable, Sendable {
  package var id: Int64 = 0
  package var name: String
  package var edge: Edge
  package var tag: String?
  package var stamps = RecordStamps()
  package var pending = PendingKind.nothing
  package var group: Int64 = 0
  package var sentChange = SentChange.nothing
  /// Whether the link exists in the store; otherwise one of its objects is missing.
  package var isLinked = false
  package var parked: String?
  /// The last read from the start that returned the record, or ``unconfirmedGeneration``.
  package var generation: Int64 = 0

  /// No read from the start returned the record, and the server may have it: another copy of the store, or a batch
  /// without a reply, may have sent it.
  static let unconfirmedGeneration: Int64 = -1

  package init(name: String, edge: Edge) {
    self.name = name
    self.edge = edge
  }

  /// The batch that contains the record and has no reply yet.
  package var sequence: Int64? { sentChange.sequence }
  /// The operation that the server may have executed.
  package var sentKind: PendingKind { sentChange.kind }

  /// Whether the server may have the record although no reply or read has shown it.
  var mayBeOnServer: Bool { generation < 0 }

  /// Notes that the server may have the record.
  mutating func noteDoubt() { generation = Self.unconfirmedGeneration }

  /// Whether the link was saved before the present opening of the store and has not been sent: another
  /// copy of the store may have sent it.
  var isUnsentFromBefore: Bool {
    mayBeOnServer && tag == nil && sequence == nil && pending == .save
  }

  /// Whether an open batch creates the record.
  var isBeingCreated: Bool { tag == nil && sentKind == .save }

  package mutating func requeue() {
    if pending == .nothing { pending = sentKind }
    endSending()
  }

  /// Forgets the batch, which is settled.
  package mutating func endSending() { sentChange = .nothing }

  /// Marks the record for creation, because the server no longer has it.
  package mutating func resend(group: Int64) {
    if pending == .nothing { self.group = group }
    tag = nil
    pending = .save
    parked = nil
  }

  package func save(in metadata: MirrorMetadata) throws { try metadata.update(self) }
}
