/// A record of the feed or of a look-up that this store knows, as an import reads it.
package struct IncomingRecord: Sendable {
  /// The metadata before the import.
  package let known: RecordMetadata
  /// The server's copy, with the property names of this model.
  package var record: CloudRecord
  /// The fields that the server has, as the base of later merges.
  package var newBase: FieldBag
  package let entity: EntityMapping
  /// The last copy that both sides agreed on, with the property names of this model.
  package let base: FieldBag?
  package var generation: Int64
  /// The update that the record conflicts with, if its batch has no known reply.
  package var repeated: RepeatedUpdate?
  /// Properties of which the server has a file that this device has never read; see ``EntityMapping/Reading``.
  package var unreadFiles: Set<String> = []
  /// Whether the zone is being read from another server, or one that was restored from a backup.
  package var isOtherServer: Bool

  package init(
    known: RecordMetadata,
    record: CloudRecord,
    newBase: FieldBag,
    entity: EntityMapping,
    local: FieldBag? = nil,
    generation: Int64 = 0,
    repeated: RepeatedUpdate? = nil,
    isOtherServer: Bool = false
  ) {
    self.known = known
    self.record = record
    self.newBase = newBase
    self.entity = entity
    base = known.base.map { entity.agreed($0, local: local) }
    self.generation = generation
    self.repeated = repeated
    self.isOtherServer = isOtherServer
  }

  /// Whether the zone of an agreed record was deleted since: a record that was never confirmed has no times.
  package var isForgotten: Bool { known.tag == nil && known.stamps.created != nil }

  /// The metadata with the server's copy as the agreed one.
  package var confirmed: RecordMetadata {
    var confirmed = known
    // A copy of the store that another version of the app opened sent it under another type.
    confirmed.recordType = record.recordType
    confirmed.tag = record.tag
    confirmed.stamps = record.stamps
    confirmed.base = newBase
    confirmed.generation = generation
    // A batch that was abandoned without a reply has one now.
    if confirmed.sentChange == .doubtful { confirmed.endSending() }
    return confirmed
  }

  /// The effect of an import if the store has no object of the record.
  package enum WithoutObject: Hashable, Sendable {
    /// An earlier model or a migration dropped the object, and this model has its entity.
    case insert
    /// The object was deleted here: the deletion wins and is sent with the new tag.
    case keepDeletion(overridesEdit: Bool)
  }

  package var withoutObject: WithoutObject {
    let confirmed = confirmed
    guard confirmed.pending == .delete || confirmed.sentKind == .delete else { return .insert }
    return .keepDeletion(overridesEdit: base.map { !$0.hasSameFields(as: record.fields) } ?? true)
  }
}

/// The object that a store has of an incoming record.
package struct LocalObject: Sendable {
  /// The present values of the object.
  package var fields: FieldBag
  /// The attributes whose files are missing beside the store.
  package var missingFiles: Set<String> = []
  /// The values of an object that was never sent, at earlier openings of the store.
  package var trusted: [FieldBag] = []
  /// Whether its last edit was saved before the store was opened.
  package var isFromEarlierOpening = false

  package init(_ fields: FieldBag) {
    self.fields = fields
  }
}
