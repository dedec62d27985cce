import CloudKitWebServices
import Effects
import Foundation

/// In development, importing a schema also erases the data of removed fields and types.
final class SchemaErasures: Sendable {
  let storage: any Storage
  let writer: StorageWriter
  let records: RecordWriter
  let indexes: QueryIndexes
  let delivery: NotificationDelivery
  let limits: ServiceLimits
  let effects: Effects

  init(writer: StorageWriter, records: RecordWriter, indexes: QueryIndexes) {
    self.writer = writer
    self.records = records
    self.indexes = indexes
    storage = records.storage
    delivery = records.delivery
    limits = records.limits
    effects = records.effects
  }

  /// Finishes the erasings of all imports, including those of a server that stopped; one that fails
  /// does not prevent the others.
  func finishAll() async throws {
    let begun = try storage.read { try $0.entries(DirectoryRange(.schemaErasing, limit: .max)) }
    var steps = EveryStep()
    for entry in begun {
      try await steps.run(entry.key.name) { try await finish(container: entry.key.name) }
    }
    try steps.finish()
  }

  /// Erases the data of removed types and fields from a container's development databases.
  ///
  /// It works page by page with saves and deletions, so that devices are notified; a record that a
  /// reference protects is kept. Erasing is idempotent, also if another server does it at the same
  /// time.
  func finish(container: String) async throws {
    let key = SchemaErasing.key(container)
    guard let entry = try storage.read({ try $0.entry(key) }) else { return }
    let erasing = try WireCoding.decode(SchemaErasing.self, from: entry.body)
    let partitions = try storage.read {
      try $0.partitions(container: container, environment: .development)
    }.sorted { $0.value.rawValue < $1.value.rawValue }
    if erasing.emptiedThrough != nil { try await empty(partitions, of: container) }
    for (key, id) in partitions where key.scope != .shared {
      let context = RequestContext(
        container: container,
        environment: .development,
        scope: key.scope,
        caller: .server(
          Principal(
            account: "",
            userRecordName: key.scope == .public ? ZoneID.publicOwner : key.owner
          )
        ),
        isExtended: false,
        wantsSyncToken: false
      )
      // Fields first: those that refer to a record of a removed type protect it.
      for type in erasing.strippedTypes.sorted() {
        _ = try await erase(type, .forceUpdate, in: id, context)
      }
      // The record that protects another one may be of a later type, or on a later page.
      var (found, former) = (Int.max, 0)
      repeat {
        (former, found) = (found, 0)
        for type in erasing.types.sorted() {
          found += try await erase(type, .forceDelete, in: id, context)
        }
      } while found > 0 && found < former
    }
    try await writer.write { [storage] in
      // Another server may have finished already.
      guard try storage.read({ try $0.entry(key) })?.revision == entry.revision else {
        return (nil, ())
      }
      var batch = WriteBatch()
      batch.expectedEntries[key] = .some(entry.revision)
      batch.removedEntries = [key]
      return (batch, ())
    }
  }

  /// Runs a write that may extend the development schema, after the pending erasing.
  func after<Result: Sendable>(
    _ container: String,
    _ write: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await write()
    } catch is ErasingUnderway {
      try await finish(container: container)
    }
    do {
      return try await write()
    } catch is ErasingUnderway {
      throw ErrorDictionary(.tryAgainLater, "the schema is being changed", retryAfter: 1)
    }
  }

  /// Stores the data to be erased in the schema's own transaction.
  func note(
    _ erasing: SchemaErasing?,
    container: String,
    in batch: inout WriteBatch
  ) throws {
    let key = SchemaErasing.key(container)
    guard try storage.read({ try $0.entry(key) }) == nil else {
      throw ErrorDictionary(.tryAgainLater, "the schema is being changed", retryAfter: 1)
    }
    batch.expectedEntries[key] = .some(nil)
    guard let erasing else { return }
    batch.savedEntries = [
      DirectoryEntry(
        key,
        // Never an earlier entry's revision: a server that finishes the earlier one must not remove
        // this one.
        revision: batch.schema?.stored.version ?? 1,
        body: try WireCoding.encode(erasing)
      )
    ]
  }

  /// Returns the number of records that were found.
  private func erase(
    _ type: String,
    _ operation: RecordOperationType,
    in id: PartitionID,
    _ context: RequestContext
  ) async throws -> Int {
    var found = 0
    try await indexes.activate([QueryPlan.everything], of: type, id)
    var walk = IndexWalk(
      type: type,
      field: QueryPlan.everything.name,
      zone: nil,
      limit: limits.itemsPerRequest
    )
    while true {
      // If the task is cancelled, the server's next housekeeping continues.
      try Task.checkCancellation()
      let position = walk
      let (entries, keys, zones) = try storage.read { snapshot in
        let entries = try snapshot.entries(in: id, position)
        var keys = entries.map(\.record)
        if !operation.isDelete {
          let schema = try snapshot.schema(container: context.container, environment: .development)
          let declared = schema?.schema[recordType: type]
          let records = try snapshot.records(in: id, keys: keys)
          // Records without removed fields, including the ones already erased, are not written.
          keys = try keys.filter { key in
            try records[key]?.decodedFields().keys.contains { declared?[field: $0] == nil } ?? false
          }
        }
        return (entries, keys, try snapshot.livingZones(in: id))
      }
      let names = Dictionary(zones.map { ($0.number, $0.name) }, uniquingKeysWith: { $1 })
      let operations = keys.compactMap { key -> RecordOperation? in
        let isDefault = key.zone == .defaultZone
        let zone = isDefault ? ZoneID.defaultZoneName : names[key.zone]
        guard let zone else { return nil }
        return RecordOperation(
          operationType: operation,
          record: RecordDictionary(
            recordName: key.name,
            recordType: operation.isDelete ? nil : type,
            fields: operation.isDelete ? nil : [:],
            zoneID: ZoneID(zoneName: zone)
          )
        )
      }
      if !operations.isEmpty { try await erase(operations, in: id, context) }
      found += entries.count
      guard entries.count == position.limit else { return found }
      walk.after = entries.last
    }
  }

  /// Runs operations in one transaction, or in halves if they are over a limit together: what users
  /// stored must not end the erasing.
  private func erase(
    _ operations: [RecordOperation],
    in id: PartitionID,
    _ context: RequestContext
  ) async throws {
    do {
      try await commit(operations, to: id, context)
    } catch let error as ErrorDictionary
      where error.extension?.code == .limitExceeded && operations.count > 1
    {
      try Task.checkCancellation()
      let middle = operations.count / 2
      try await erase(Array(operations[..<middle]), in: id, context)
      try await erase(Array(operations[middle...]), in: id, context)
    }
  }

  private func commit(
    _ operations: [RecordOperation],
    to id: PartitionID,
    _ context: RequestContext
  ) async throws {
    let call = ModifyCall(
      parts: records,
      request: ModifyRecordsRequest(operations: operations, atomic: false),
      context: context,
      user: context.userName,
      sequence: nil,
      isErasing: true
    )
    let outcome = try await records.commit(call, to: id)
    if let note = outcome.note { delivery.announce(note) }
  }
}
