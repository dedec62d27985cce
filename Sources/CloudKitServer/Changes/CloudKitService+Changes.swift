import CloudKitWebServices
import Foundation

extension CloudKitService {
  /// `changes/database`, or the older `zones/changes` with its own name for the token.
  func databaseChanges(
    _ request: DatabaseChangesRequest,
    _ context: RequestContext,
    isOlder: Bool = false
  ) async throws -> Data {
    _ = try context.user()
    guard context.scope != .public else {
      throw ErrorDictionary(.badRequest, "the public database has no changes")
    }
    let id = try partition(context)
    let limit = pageSize(request.resultsLimit)
    let response = try storage.read { snapshot in
      let database = try snapshot.database(id)
      let text = request.syncToken ?? request.metaSyncToken
      let token = try open(text, zone: nil, id, counter: database.counter, context)
      var rows = try snapshot.zones(in: id, changedAfter: token.counter, limit: limit + 1)
      let isMoreComing = rows.count > limit
      if isMoreComing { rows.removeLast() }
      let reached = isMoreComing ? rows.last?.change ?? token.counter : database.counter
      let next = try seal(ChangeToken(zone: nil, id, counter: reached), context)
      let zones = rows.compactMap { row -> ItemResult<ZoneDictionary>? in
        let isGone = row.ending != nil
        // Who starts from nothing need not hear of zones that came and went.
        if isGone, token.counter == .zero { return nil }
        return .success(
          ZoneDictionary(zoneID: ZoneDirectory.id(named: row.name, context), deleted: isGone)
        )
      }
      return DatabaseChangesResponse(
        zones: zones,
        syncToken: next,
        // Strict readers of `changes/database` refuse a key that is not its own.
        metaSyncToken: isOlder ? next : nil,
        moreComing: isMoreComing
      )
    }
    return try WireCoding.encode(response)
  }

  func changedRecords(_ request: ZoneChangesOptions, _ context: RequestContext) async throws -> Data
  {
    try changes(request, context)
  }

  func zoneChanges(_ request: ZoneChangesRequest, _ context: RequestContext) async throws -> Data {
    _ = try context.user()
    try checkCount(request.zones.count)
    var json = JSONWriter(capacity: 1024)
    json.beginObject()
    json.key("zones")
    json.beginArray()
    for zone in request.zones {
      var options = zone
      options.desiredKeys = options.desiredKeys ?? request.desiredKeys
      options.desiredRecordTypes = options.desiredRecordTypes ?? request.desiredRecordTypes
      options.resultsLimit = options.resultsLimit ?? request.resultsLimit
      options.numbersAsStrings = options.numbersAsStrings ?? request.numbersAsStrings
      do {
        json.encoded(try changes(options, context))
      } catch var error as ErrorDictionary {
        error.zoneID = options.zoneID
        json.encoded(try WireCoding.encode(context.stripped(error)))
      }
    }
    json.endArray()
    json.endObject()
    return json.data
  }

  private func changes(
    _ options: ZoneChangesOptions,
    _ context: RequestContext
  ) throws -> Data {
    _ = try context.user()
    guard !options.zoneID.isDefault, context.scope != .public else {
      throw ErrorDictionary(.badRequest, "cannot get changes in default zone")
    }
    let id = try partition(context)
    let limit = pageSize(options.resultsLimit)
    return try storage.read { snapshot in
      let rows = try snapshot.zones(in: id, named: [options.zoneID.zoneName])
      let zones = try ZoneDirectory(rows, context)
      let zone = try zones.number(of: options.zoneID)
      let counter = try snapshot.database(id).counter
      let token = try open(options.syncToken, zone: zone, id, counter: counter, context)
      let isReversed = options.reverse ?? false
      // A page that continues a listing newest first stays below its ceiling.
      let ceiling = isReversed ? token.ceiling.map { ChangeNumber($0.rawValue - 1) } : nil
      var found = try snapshot.changes(
        in: id,
        ChangeRange(
          zone: zone,
          after: token.counter,
          through: ceiling,
          isReversed: isReversed,
          includesTombstones: token.counter != .zero,
          limit: limit + 1
        )
      )
      let isMoreComing = found.count > limit
      if isMoreComing { found.removeLast() }
      var next = ChangeToken(zone: zone, id, counter: counter)
      if isReversed {
        let top = token.top ?? counter
        next.counter = isMoreComing ? token.counter : top
        next.ceiling = isMoreComing ? found.last?.change : nil
        next.top = isMoreComing ? top : nil
      } else if isMoreComing {
        next.counter = found.last?.change ?? token.counter
      }
      let rendering = RecordRendering(
        service: self,
        partition: id,
        zones: zones,
        context: context
      )
      let shape = RecordRendering.Shape(
        desiredKeys: options.desiredKeys,
        numbersAsStrings: options.numbersAsStrings
      )
      let wanted = options.desiredRecordTypes.map(Set.init)
      var json = JSONWriter(capacity: 256 + 512 * found.count)
      json.beginObject()
      json.key("moreComing")
      json.boolean(isMoreComing)
      json.key("records")
      json.beginArray()
      for record in found {
        if record.isDeleted {
          json.record(rendering.tombstone(record))
        } else if wanted?.contains(record.type) ?? true {
          try rendering.write(record, shape, to: &json)
        }
      }
      json.endArray()
      json.member("syncToken", try seal(next, context))
      json.member("zoneID", ZoneDirectory.id(named: options.zoneID.zoneName, context))
      json.endObject()
      return json.data
    }
  }

  /// A client's wish within the limit; none or nonsense means the limit.
  func pageSize(_ wish: Int?) -> Int {
    guard let wish, wish > 0 else { return limits.recordsPerReply }
    return min(wish, limits.recordsPerReply)
  }
}
