import CloudKitWebServices
import Foundation

/// The feed of a zone.
extension CloudKitService {
  func changedRecords(_ request: ZoneChangesOptions, _ context: RequestContext) async throws -> Data
  {
    var json = JSONWriter(capacity: 1024)
    try write(changes: request, context, to: &json)
    return json.finished()
  }

  func zoneChanges(_ request: ZoneChangesRequest, _ context: RequestContext) async throws -> Data {
    _ = try context.participant()
    try checkCount(request.zones.count)
    var json = JSONWriter(capacity: 1024)
    json.beginObject()
    json.key("zones")
    json.beginArray()
    for zone in request.zones {
      var options = zone
      options.feed = zone.feed.filled(from: request.feed)
      let mark = json.mark
      do {
        try write(changes: options, context, to: &json)
      } catch var error as ErrorDictionary {
        json.takeBack(to: mark)
        error.zoneID = options.zoneID
        json.encoded(try WireCoding.encode(context.stripped(error)))
      }
    }
    json.endArray()
    json.endObject()
    return json.finished()
  }

  private func write(
    changes options: ZoneChangesOptions,
    _ context: RequestContext,
    to json: inout JSONWriter
  ) throws {
    _ = try context.participant()
    guard !options.zoneID.isDefault, context.scope != .public else {
      throw ErrorDictionary(.badRequest, "cannot get changes in default zone")
    }
    let sent = Result { try open(options.syncToken) }
    let mark = json.mark
    try storage.read(foreseeing: try foreseen(options, try? sent.get(), context)) { snapshot in
      // Of a run whose connection broke.
      json.takeBack(to: mark)
      let database = try target(of: [options.zoneID], context, snapshot)
      let zones = ZoneDirectory(database, context)
      let zone = try zones.number(of: options.zoneID)
      let view = database.views?[zone]
      let counter = try snapshot.database(database.id).counter
      let token = try check(sent.get(), zone: zone, database.id, counter: counter, context)
      try checkFreshness(token, zones.row(named: options.zoneID.zoneName), view)
      let page = try FeedPage(
        ZoneFeed(snapshot: snapshot, partition: database.id, zone: zone, view: view),
        token,
        counter: counter,
        isReversed: options.feed.reverse ?? false,
        limit: try pageSize(options.feed.resultsLimit)
      )
      let rendering = RecordRendering(
        service: self,
        partition: database.id,
        zones: zones,
        context: context
      )
      json.beginObject()
      json.key("moreComing")
      json.boolean(page.isMoreComing)
      json.key("records")
      try write(page, options.feed, rendering, to: &json)
      json.member("syncToken", try seal(page.token, context))
      json.member("zoneID", zones.id(named: options.zoneID.zoneName))
      json.endObject()
    }
  }

  /// What a page is made of.
  ///
  /// A token names the zone and what its holder knows, so with one it is all that will be asked.
  private func foreseen(
    _ options: ZoneChangesOptions,
    _ token: ChangeToken?,
    _ context: RequestContext
  ) throws -> [ForeseenRead] {
    guard context.scope == .private else { return [] }
    let id = try partition(context)
    var reads: [ForeseenRead] = [.zones(id, named: [options.zoneID.zoneName]), .database(id)]
    if let token, let zone = token.zone, token.partition == id,
      // What is wrong with a request is said in its turn.
      let limit = try? pageSize(options.feed.resultsLimit)
    {
      let range = FeedPage.range(
        token,
        isReversed: options.feed.reverse ?? false,
        limit: limit
      )
      reads.append(.changes(id, range.changes(of: zone)))
    }
    return reads
  }

  /// Traces of what is gone are kept for a time only, and a stay in a shared zone begins anew.
  private func checkFreshness(
    _ token: ChangeToken,
    _ row: StoredZone?,
    _ view: ZoneView?
  ) throws(ErrorDictionary) {
    guard !token.isFirst || token.began != nil else { return }
    guard max(token.counter, token.began ?? .zero) >= row?.horizon ?? .zero,
      token.stay == view?.wholeSince
    else { throw Self.expiredToken() }
  }

  private func write(
    _ page: FeedPage,
    _ options: FeedOptions,
    _ rendering: RecordRendering,
    to json: inout JSONWriter
  ) throws {
    let shape = RecordRendering.Shape(
      desiredKeys: options.desiredKeys,
      numbersAsStrings: options.numbersAsStrings
    )
    let wanted = options.desiredRecordTypes.map(Set.init)
    json.reserve(
      page.items.reduce(64) { sum, item in
        if case .record(let record) = item.content { sum + record.size + 768 } else { sum + 256 }
      }
    )
    json.beginArray()
    for item in page.items {
      switch item.content {
      case .record(let record):
        guard wanted?.contains(record.type) ?? true else { continue }
        try rendering.writeItem(record, shape, to: &json)
      case .gone(let key, let type): json.record(rendering.tombstone(key, type))
      case .hidden: continue
      }
    }
    json.endArray()
  }

  /// A client's wish within the limit; some send 0 for none of their own.
  func pageSize(_ wish: Int?) throws(ErrorDictionary) -> Int {
    guard let wish, wish != 0 else { return limits.recordsPerReply }
    guard wish > 0 else {
      throw ErrorDictionary(.badRequest, "resultsLimit must not be negative")
    }
    return min(wish, limits.recordsPerReply)
  }
}
