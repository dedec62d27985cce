import Foundation

/// What waits to be sent for a record.
package enum PendingKind: Int64, Hashable, Sendable {
  case nothing = 0
  case save = 1
  case delete = 2
}

/// What the service keeps about a record beside its fields and tag.
package struct RecordStamps: Hashable, Sendable {
  /// Seconds since 2001.
  package var created: Double?
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

  /// Whether the record was saved later than another copy of it, as the service says.
  func isNewer(than other: RecordStamps) -> Bool {
    guard let modified, let earlier = other.modified else { return false }
    return modified > earlier
  }

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
      // Stamps are shown, and decide only which of two copies is the newer one: neither, without them.
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

/// The books' entry for one object.
package struct BookedRecord: BookedChange, Hashable, Sendable {
  package var id: Int64 = 0
  package var name: String
  package var recordType: String
  package var entityName: String
  /// The object's primary key; nil once the object is gone and the record is still to be deleted.
  package var key: Int64?
  /// The change tag of the base; nil until the server has confirmed the record.
  package var tag: String?
  package var stamps = RecordStamps()
  /// The last copy that both sides agreed on.
  package var base: FieldBag?
  package var pending = PendingKind.nothing
  /// The edited properties that wait for a batch.
  package var properties: Set<String> = []
  /// The many-to-many relationships whose edges have to be compared.
  package var edges: Set<String> = []
  /// The history transaction of the save, which batches keep together.
  package var group: Int64 = 0
  /// The batch that the record is part of and whose reply has not come.
  package var sequence: Int64?
  package var sentKind = PendingKind.nothing
  /// The edited properties in that batch.
  package var sent: Set<String> = []
  /// Why the record cannot be sent, where the server refused it.
  package var parked: String?
  package var generation: Int64 = 0

  package init(name: String, recordType: String, entityName: String, key: Int64?) {
    self.name = name
    self.recordType = recordType
    self.entityName = entityName
    self.key = key
  }

  /// All properties with edits that the server has not confirmed.
  package var unconfirmed: Set<String> { properties.union(sent) }

  /// Whether anything of this record has still to reach the server.
  package var hasUnconfirmedEdits: Bool {
    pending != .nothing || sentKind != .nothing
  }

  /// Puts what was sent back among what waits, because the batch came to nothing.
  package mutating func requeue() {
    if pending == .nothing { pending = sentKind }
    properties.formUnion(sent)
    endSending()
  }

  /// Has the whole record created again, because the server no longer has it.
  package mutating func resend(_ entity: EntityMapping, group: Int64) {
    if pending == .nothing { self.group = group }
    tag = nil
    pending = .save
    properties = Set(entity.fieldProperties)
    parked = nil
  }

  /// Forgets the batch, because it is done.
  package mutating func endSending() {
    sent = []
    sentKind = .nothing
    sequence = nil
  }

  package func save(in books: MirrorBooks) throws { try books.update(self) }
}
