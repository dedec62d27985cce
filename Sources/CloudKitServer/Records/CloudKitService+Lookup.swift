import CloudKitWebServices
import Foundation

extension CloudKitService {
  func lookupRecords(
    _ request: LookupRecordsRequest,
    _ context: RequestContext
  ) async throws -> Data {
    try checkCount(request.records.count)
    let id = try partition(context)
    let named = request.records.map { $0.zoneID ?? request.zoneID ?? .defaultZone }
    return try storage.read { snapshot in
      // The request's own zone too: its token may be asked for, whatever zones the records name.
      let zoneNames = Set((named + [request.zoneID ?? .defaultZone]).map(\.zoneName))
      let rows = try snapshot.zones(in: id, named: Array(zoneNames))
      let zones = try ZoneDirectory(rows, context)
      let keys = zip(request.records, named).map { record, zone in
        Result { try RecordKey(zone: zones.number(of: zone), name: record.recordName) }
      }
      let found = try snapshot.records(in: id, keys: keys.compactMap { try? $0.get() })
      let access = try snapshot.access(in: id, context)
      let rendering = RecordRendering(
        service: self,
        partition: id,
        zones: zones,
        context: context
      )
      var json = JSONWriter(capacity: 64 + 512 * keys.count)
      json.beginObject()
      json.key("records")
      json.beginArray()
      for (wanted, key) in zip(request.records, keys) {
        do {
          guard let record = found[try key.get()], !record.isDeleted else {
            throw ErrorDictionary(.notFound, "Record not found")
          }
          guard
            access.allows(.read, type: record.type, creator: record.created.userRecordName)
          else {
            throw ErrorDictionary(.accessDenied, "READ operation not permitted")
          }
          let shape = RecordRendering.Shape(
            desiredKeys: wanted.desiredKeys ?? request.desiredKeys,
            numbersAsStrings: request.numbersAsStrings
          )
          try rendering.write(record, shape, to: &json)
        } catch var error as ErrorDictionary {
          error.recordName = wanted.recordName
          try rendering.write(error, to: &json)
        }
      }
      json.endArray()
      json.member(
        "syncToken",
        try currentSyncToken(request.zoneID, id, zones, snapshot, context)
      )
      json.endObject()
      return json.data
    }
  }

  /// The zone's newest token, where the request asked for one.
  func currentSyncToken(
    _ zone: ZoneID?,
    _ id: PartitionID,
    _ zones: ZoneDirectory,
    _ snapshot: any StorageSnapshot,
    _ context: RequestContext
  ) throws -> String? {
    guard context.wantsSyncToken, context.principal != nil, let zone,
      let row = zones.row(named: zone.zoneName), row.ending == nil
    else { return nil }
    let counter = try snapshot.database(id).counter
    return try seal(ChangeToken(zone: row.number, id, counter: counter), context)
  }
}
