import Effects
import Foundation
import OpenCoreData

/// The values that are the same in all transactions of a mirrored store.
package struct MirrorContext: Sendable {
  package var mapping: ModelMapping
  package var zone: String
  package var effects: Effects
  package var journal: SyncJournal
  package var serializer: RecordSerializer
  package var assets: AssetFolder
  /// The sender of batches, new with each opening of the store: a file that was copied, restored or
  /// lost its last commits reuses numbers, which the server must not treat as repeats.
  package let device: String
  /// The store's identifier, which all copies of it share.
  package let store: UUID?
  /// The deletions that wait for the moves of members.
  let heldOwners = HeldOwners()
  /// Where the comparison of an object with many links continues.
  let linkPosition = LinkPosition()

  package init(
    store: UUID? = nil,
    mapping: ModelMapping,
    zone: String = MirrorNames.zone,
    effects: Effects,
    journal: SyncJournal,
    serializer: RecordSerializer = RecordSerializer(),
    assets: AssetFolder
  ) {
    self.store = store
    self.mapping = mapping
    self.zone = zone
    self.effects = effects
    self.journal = journal
    self.serializer = serializer
    self.assets = assets
    let device = effects.uuid()
    self.device = (effects.has(.reuseSequence) ? store ?? device : device).uuidString
  }
}

/// The mirroring inside one write transaction: objects and metadata together.
package struct MirrorSession {
  package let rows: any MirrorRows
  package let metadata: MirrorMetadata
  package let context: MirrorContext

  package init(rows: any MirrorRows, context: MirrorContext) {
    self.rows = rows
    metadata = MirrorMetadata(rows.connection)
    self.context = context
  }

  var mapping: ModelMapping { context.mapping }

  /// The record name of an object, if it has one.
  func recordName(of reference: RowReference) throws -> String? {
    guard let entity = rows.entityName(of: reference) else { return nil }
    return try metadata.recordName(entity: entity, key: reference.key)
  }

  /// The object of a record, if it has been imported.
  func reference(of record: RecordMetadata) -> RowReference? {
    guard let key = record.key else { return nil }
    return rows.reference(entityName: record.entityName, key: key)
  }

  /// The object of a record name, if it has been imported.
  func reference(named name: String) throws -> RowReference? {
    try metadata.record(named: name).flatMap(reference(of:))
  }

  func recordMetadata(of reference: RowReference) throws -> RecordMetadata? {
    guard let entity = rows.entityName(of: reference) else { return nil }
    return try metadata.record(entity: entity, key: reference.key)
  }

  /// The record of an object as it is now; `base` where it is about to be sent.
  func serialize(
    _ row: Row,
    _ mapping: EntityMapping,
    base: FieldBag? = nil
  ) throws -> SerializedRecord {
    try context.serializer.serialize(row.values, mapping, base: base) { try recordName(of: $0) }
  }

  /// Whether the zone is being read from a service that may have lost agreed values: another one, or
  /// one that was restored from a backup.
  func isOtherServer() throws -> Bool {
    try metadata.zone(context.zone).rereading == .otherServer
  }

  /// Marks properties of an object for export, though they were not edited here.
  func mark(_ record: RecordMetadata, _ properties: Set<String>) throws {
    var record = record
    guard record.pending != .delete else { return }
    if record.pending == .nothing { record.group = try rows.lastTransactionNumber() }
    record.pending = .save
    record.properties.formUnion(properties)
    try metadata.update(record)
  }
}
