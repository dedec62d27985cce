import CloudKitWebServices
import Foundation

extension RecordService {
  func lookup(
    _ request: LookupRecordsRequest,
    _ context: RequestContext
  ) async throws -> Data {
    try limits.checkCount(request.records.count)
    return try await reads.run(for: context) { [self] control in
      try found(request, context, control)
    }
  }

  private func found(
    _ request: LookupRecordsRequest,
    _ context: RequestContext,
    _ control: ReadControl
  ) throws -> Data {
    try storage.read(control) { snapshot in
      let call = LookupCall(request, context, snapshot, service: self)
      return try call.reply()
    }
  }
  /// Reads records in portions, so that no more of them are in memory than a reply may have.
  fileprivate func records(
    _ keys: [RecordKey],
    in id: PartitionID,
    _ snapshot: any StorageSnapshot
  ) throws -> [RecordKey: StoredRecord] {
    let unique = Array(Set(keys))
    var found: [RecordKey: StoredRecord] = [:]
    var bytes = 0
    for start in stride(from: 0, to: unique.count, by: Self.recordsPerRead) {
      let piece = unique[start..<min(start + Self.recordsPerRead, unique.count)]
      let records = try snapshot.records(in: id, keys: Array(piece))
      bytes += records.values.reduce(0) { $0 + $1.fields.count }
      do {
        try limits.checkReply(bytes, count: unique.count)
      } catch {
        throw error.dictionary
      }
      found.merge(records) { old, _ in old }
    }
    return found
  }

  /// The records of one read: at a megabyte each they fit in memory besides the reply.
  private static let recordsPerRead = 50
}

/// One `records/lookup`, in a snapshot.
private struct LookupCall {
  private let request: LookupRecordsRequest
  private let context: RequestContext
  private let snapshot: any StorageSnapshot
  private let service: RecordService
  /// The zone of each wanted record.
  private let zones: [ZoneID]
  /// The request's own zone: its token may be requested, regardless of the records' zones.
  private let zone: ZoneID

  init(
    _ request: LookupRecordsRequest,
    _ context: RequestContext,
    _ snapshot: any StorageSnapshot,
    service: RecordService
  ) {
    self.request = request
    self.context = context
    self.snapshot = snapshot
    self.service = service
    let zone = request.zoneID ?? .defaultZone
    zones = request.records.map { $0.zoneID ?? zone }
    self.zone = zone
  }

  func reply() throws -> Data {
    let databases = try service.databases.targets(of: zones + [zone], context, snapshot)
    let keys = keys(databases)
    let found = try records(keys, databases)
    let database = try databases.database(of: zone)
    var json = JSONWriter(capacity: 64 + 1024 * keys.count)
    json.beginObject()
    json.key("records")
    json.beginArray()
    try write(keys, found, databases, to: &json)
    json.endArray()
    json.member(
      "syncToken",
      try service.tokens.newest(of: request.zoneID, database, snapshot, context)
    )
    json.endObject()
    return json.finished()
  }

  /// The key of each wanted record, or why there is none.
  private func keys(_ databases: TargetDatabases) -> [Result<RecordKey, any Error>] {
    var keys: [Result<RecordKey, any Error>] = []
    for (record, zone) in zip(request.records, zones) {
      keys.append(
        Result {
          let zones = ZoneDirectory(try databases.database(of: zone), context)
          // No record can have such a name, so no database is read for it.
          guard NameRules.isTarget(record.recordName, nil, service.limits) else {
            throw ErrorDictionary(.notFound, "Record not found")
          }
          return RecordKey(zone: try zones.number(of: zone), name: record.recordName)
        }
      )
    }
    return keys
  }

  /// The records that the caller sees, by owner.
  private func records(
    _ keys: [Result<RecordKey, any Error>],
    _ databases: TargetDatabases
  ) throws -> [String: [RecordKey: StoredRecord]] {
    var found: [String: [RecordKey: StoredRecord]] = [:]
    for (owner, database) in databases.byOwner {
      let wanted = zip(zones, keys).filter { databases.owner(of: $0.0) == owner }
        .compactMap { try? $0.1.get() }
      found[owner] = try service.records(wanted, in: database.id, snapshot)
        .filter { database.sees($0.value) }
    }
    return found
  }

  /// Writes each record, or the error about it.
  private func write(
    _ keys: [Result<RecordKey, any Error>],
    _ found: [String: [RecordKey: StoredRecord]],
    _ databases: TargetDatabases,
    to json: inout JSONWriter
  ) throws {
    // All zones are of one container and environment, regardless of their owner.
    let access = try snapshot.access(in: try databases.database(of: zone).id, context)
    let renderings = databases.byOwner.mapValues { database in
      RecordRendering(
        renderer: service.renderer,
        partition: database.id,
        zones: ZoneDirectory(database, context),
        context: context
      )
    }
    let common = RecordRendering.Shape(
      desiredKeys: request.desiredKeys,
      numbersAsStrings: request.numbersAsStrings
    )
    for (index, (wanted, key)) in zip(request.records, keys).enumerated() {
      let owner = databases.owner(of: zones[index])
      guard let rendering = renderings[owner] else { continue }
      do {
        guard let record = found[owner]?[try key.get()], !record.isDeleted else {
          throw ErrorDictionary(.notFound, "Record not found")
        }
        guard access.allows(.read, type: record.type, creator: .of(record)) else {
          throw ErrorDictionary(.accessDenied, "READ operation not permitted")
        }
        let shape = common.overridden(desiredKeys: wanted.desiredKeys)
        try rendering.writeItem(record, shape, to: &json)
        try service.limits.checkReply(json.count, count: index + 1)
      } catch let error as ReplyTooLarge {
        throw error.dictionary
      } catch var error as ErrorDictionary {
        error.recordName = wanted.recordName
        try rendering.write(error, to: &json)
      }
    }
  }
}
