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
    let named = request.records.map { $0.zoneID ?? request.zoneID ?? .defaultZone }
    return try storage.read(control) { snapshot in
      // Include the request's own zone: its token may be requested, regardless of the records'
      // zones.
      let asked = named + [request.zoneID ?? .defaultZone]
      let databases = try self.databases.targets(of: asked, context, snapshot)
      var keys: [Result<RecordKey, any Error>] = []
      var found: [String: [RecordKey: StoredRecord]] = [:]
      for (record, zone) in zip(request.records, named) {
        keys.append(
          Result {
            let zones = ZoneDirectory(try databases.database(of: zone), context)
            // No record can have such a name, so no database is read for it.
            guard NameRules.isTarget(record.recordName, nil, limits) else {
              throw ErrorDictionary(.notFound, "Record not found")
            }
            return RecordKey(zone: try zones.number(of: zone), name: record.recordName)
          }
        )
      }
      for (owner, database) in databases.byOwner {
        let wanted = zip(named, keys).filter { databases.owner(of: $0.0) == owner }
          .compactMap { try? $0.1.get() }
        found[owner] = try records(wanted, in: database.id, snapshot)
          .filter { database.sees($0.value) }
      }
      // All zones are of one container and environment, regardless of their owner.
      let access = try snapshot.access(
        in: try databases.database(of: request.zoneID ?? .defaultZone).id,
        context
      )
      let renderings = databases.byOwner.mapValues { database in
        RecordRendering(
          renderer: renderer,
          partition: database.id,
          zones: ZoneDirectory(database, context),
          context: context
        )
      }
      var json = JSONWriter(capacity: 64 + 1024 * keys.count)
      json.beginObject()
      json.key("records")
      json.beginArray()
      let common = RecordRendering.Shape(
        desiredKeys: request.desiredKeys,
        numbersAsStrings: request.numbersAsStrings
      )
      for (index, (wanted, key)) in zip(request.records, keys).enumerated() {
        let owner = databases.owner(of: named[index])
        guard let rendering = renderings[owner] else { continue }
        do {
          guard let record = found[owner]?[try key.get()], !record.isDeleted else {
            throw ErrorDictionary(.notFound, "Record not found")
          }
          guard
            access.allows(.read, type: record.type, creator: .of(record))
          else {
            throw ErrorDictionary(.accessDenied, "READ operation not permitted")
          }
          let shape = common.overridden(desiredKeys: wanted.desiredKeys)
          try rendering.writeItem(record, shape, to: &json)
          try limits.checkReply(json.count, count: index + 1)
        } catch let error as ReplyTooLarge {
          throw error.dictionary
        } catch var error as ErrorDictionary {
          error.recordName = wanted.recordName
          try rendering.write(error, to: &json)
        }
      }
      json.endArray()
      let database = try databases.database(of: request.zoneID ?? .defaultZone)
      json.member(
        "syncToken",
        try tokens.newest(of: request.zoneID, database, snapshot, context)
      )
      json.endObject()
      return json.finished()
    }
  }

  /// Reads records in portions, so that no more of them are in memory than a reply may have.
  private func records(
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
