import Foundation

/// The pending operation of a record.
package enum PendingKind: Int64, Hashable, Sendable {
  case nothing = 0
  case save = 1
  case delete = 2
}

/// The service's own values of a record, besides its fields and tag.
package struct RecordStamps: Hashable, Sendable {
  /// Seconds since 2001.
  package var created: Double?
  /// Nil with a time of creation: see `isOfLostCopy`.
  package var modified: Double?
  package var creator: String?
  package var modifier: String?

  package init(
    created: Double? = nil,
    modified: Double? = nil,
    creator: String? = nil,
    modifier: String? = nil
  ) {
    self.created = created
    self.modified = modified
    self.creator = creator
    self.modifier = modifier
  }

  /// Whether the record was saved later than another copy of it, by the service's times.
  func isNewer(than other: RecordStamps) -> Bool {
    guard let modified, let earlier = other.modified else { return false }
    return modified > earlier
  }

  /// Whether the copy is one that a restored server has, with values older than the agreed ones, which are
  /// sent again: its time of change is left out.
  var isOfLostCopy: Bool { created != nil && modified == nil }

  var encoded: Data {
    var fields: [String: MirrorValue] = [:]
    fields["c"] = created.map(MirrorValue.double)
    fields["m"] = modified.map(MirrorValue.double)
    fields["C"] = creator.map(MirrorValue.string)
    fields["M"] = modifier.map(MirrorValue.string)
    return FieldBag(fields).encoded
  }

  init(encoded: Data?) {
    guard let encoded, let bag = try? FieldBag(encoded: encoded) else {
      // Stamps are only shown, and decide which of two copies is newer: without them, neither is.
      self.init()
      return
    }
    self.init()
    if case .double(let seconds) = bag["c"] { created = seconds }
    if case .double(let seconds) = bag["m"] { modified = seconds }
    if case .string(let name) = bag["C"] { creator = name }
    if case .string(let name) = bag["M"] { modifier = name }
  }
}

/// The metadata of one object.
package struct RecordMetadata: ChangeMetadata, Hashable, Sendable {
  package var id: Int64 = 0
  package var name: String
  package var recordType: String
  package var entityName: String
  /// The object's primary key; nil once the object is deleted and the record's deletion is pending.
  package var key: Int64?
  /// The change tag of the base; nil until the server has confirmed the record.
  package var tag: String?
  package var stamps = RecordStamps()
  /// The last copy that both sides agreed on.
  package var base: FieldBag?
  package var pending = PendingKind.nothing
  /// The edited properties that are not in a batch yet.
  package var properties: Set<String> = []
  /// The many-to-many relationships whose edges have to be compared.
  package var edges: Set<String> = []
  /// The history transaction of the save, which batches keep together.
  package var group: Int64 = 0
  package var sentChange = SentChange.nothing
  /// Why the server refused the record; it is then parked.
  package var parked: String?
  package var generation: Int64 = 0

  package init(name: String, recordType: String, entityName: String, key: Int64?) {
    self.name = name
    self.recordType = recordType
    self.entityName = entityName
    self.key = key
  }

  /// The batch that contains the record and has no reply yet.
  package var sequence: Int64? { sentChange.sequence }
  /// The operation that the server may have executed.
  package var sentKind: PendingKind { sentChange.kind }
  /// The edited properties in that batch.
  package var sent: Set<String> { sentChange.properties }

  /// All properties with edits that the server has not confirmed.
  package var unconfirmed: Set<String> { properties.union(sent) }

  /// Whether anything of this record has not reached the server yet.
  package var hasUnconfirmedEdits: Bool {
    pending != .nothing || sentKind != .nothing
  }

  /// Whether this store has never sent the record: where the server has it, or its tombstone, another
  /// copy of the store has sent it.
  var isNeverSent: Bool {
    tag == nil && sentChange == .nothing && stamps.created == nil
      && base.map { !$0.values.isEmpty } ?? true
  }

  /// Whether its object was restored while its deletion is being sent.
  var isRestoredDuringDeletion: Bool { sentKind == .delete && pending == .save && key != nil }

  /// Whether the batch that was to create the record was abandoned without a reply.
  var isDoubtful: Bool { tag == nil && sentChange == .doubtful }

  /// Whether the batch that was to update the record was abandoned without a reply, and the server's copy, which
  /// would show whether it was executed, could not be read.
  var hasDoubtfulUpdate: Bool { tag != nil && sentChange == .doubtful }

  /// Whether an open batch creates the record again of an object that was restored here.
  var isBeingRestored: Bool {
    tag == nil && sequence != nil && sentKind == .save && base?.values.isEmpty == true
  }

  /// Makes the sent properties pending again, because the batch failed.
  package mutating func requeue() {
    if pending == .nothing { pending = sentKind }
    properties.formUnion(sent)
    endSending()
  }

  /// Marks the whole record for creation, because the server no longer has it.
  package mutating func resend(_ entity: EntityMapping, group: Int64) {
    if pending == .nothing { self.group = group }
    if hasDoubtfulUpdate { sentChange = .nothing }
    tag = nil
    pending = .save
    properties = Set(entity.fieldProperties)
    parked = nil
  }

  /// Makes the record of an object that was restored while its deletion was sent one that is created: no values
  /// were agreed on.
  mutating func noteDeletion() {
    endSending()
    tag = nil
    base = FieldBag()
  }

  /// Forgets the batch, which is settled.
  package mutating func endSending() { sentChange = .nothing }

  package func save(in metadata: MirrorMetadata) throws { try metadata.update(self) }
}
