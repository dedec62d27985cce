import CloudKitWebServices
import Foundation

/// The change feeds of zones and databases.
final class ChangeFeedService: Sendable {
  let storage: any Storage
  let databases: DatabaseLookup
  let reads: BoundedReads
  let tokens: ChangeTokens
  let limits: ServiceLimits
  private let renderer: RecordRenderer

  init(
    storage: any Storage,
    databases: DatabaseLookup,
    reads: BoundedReads,
    tokens: ChangeTokens,
    renderer: RecordRenderer,
    limits: ServiceLimits
  ) {
    self.storage = storage
    self.databases = databases
    self.reads = reads
    self.tokens = tokens
    self.renderer = renderer
    self.limits = limits
  }

  // MARK: The feed of a zone

  func changedRecords(_ request: ZoneChangesOptions, _ context: RequestContext) async throws -> Data
  {
    try await reads.run(.scan, for: context) { [self] control in
      var json = JSONWriter(capacity: 1024)
      try write(changes: request, context, bytes: limits.bytesPerPage, control, to: &json)
      return json.finished()
    }
  }

  func zoneChanges(_ request: ZoneChangesRequest, _ context: RequestContext) async throws -> Data {
    _ = try context.participant()
    try limits.checkCount(request.zones.count)
    try checkOncePerZone(request.zones.map(\.zoneID), context)
    return try await reads.run(.scan, for: context) { [self] control in
      var json = JSONWriter(capacity: 1024)
      json.beginObject()
      json.key("zones")
      json.beginArray()
      for zone in request.zones {
        var options = zone
        options.feed = zone.feed.filled(from: request.feed)
        let mark = json.mark
        do {
          // The zones of a request share the byte limit of one reply.
          let left = limits.bytesPerPage - json.count
          try write(changes: options, context, bytes: left, control, to: &json)
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
  }

  /// Throws if a request names a zone twice: it would be read and sent twice.
  private func checkOncePerZone(
    _ zones: [ZoneID],
    _ context: RequestContext
  ) throws(ErrorDictionary) {
    var seen: Set<ZoneID> = []
    for zone in zones {
      // All zones of a private database belong to the caller, regardless of how the owner is
      // written.
      let owner = context.scope == .shared ? zone.ownerRecordName : nil
      let plain = ZoneID(zoneName: zone.zoneName, ownerRecordName: owner)
      guard seen.insert(plain).inserted else {
        throw ErrorDictionary(.badRequest, "the zone '\(zone.zoneName)' is named more than once")
      }
    }
  }

  private func write(
    changes options: ZoneChangesOptions,
    _ context: RequestContext,
    bytes: Int,
    _ control: ReadControl,
    to json: inout JSONWriter
  ) throws {
    _ = try context.participant()
    guard !options.zoneID.isDefault, context.scope != .public else {
      throw ErrorDictionary(.badRequest, "cannot get changes in default zone")
    }
    let sent = Result { try tokens.open(options.syncToken) }
    let mark = json.mark
    let reads = try prefetchedReads(options, try? sent.get(), context, bytes)
    try storage.read(prefetching: reads, control: control) { snapshot in
      // Remove the incomplete output of an attempt whose connection failed.
      json.takeBack(to: mark)
      let database = try databases.target(of: [options.zoneID], context, snapshot)
      let zones = ZoneDirectory(database, context)
      let zone = try zones.number(of: options.zoneID)
      let reader = database.access.reader(of: zone)
      let counter = try snapshot.database(database.id).counter
      let token = try tokens.check(sent.get(), zone: zone, database.id, counter: counter, context)
      try checkFreshness(token, zones.row(named: options.zoneID.zoneName), reader)
      let rendering = RecordRendering(
        renderer: renderer,
        partition: database.id,
        zones: zones,
        context: context
      )
      let limit = try limits.pageSize(options.feed.resultsLimit)
      let page =
        bytes > 0
        ? try FeedPage(
          ZoneFeed(snapshot: snapshot, partition: database.id, zone: zone, reader: reader),
          token,
          counter: counter,
          isReversed: options.feed.reverse ?? false,
          includesDeleted: options.feed.includesDeleted ?? false,
          size: FeedPage.Size(records: limit, bytes: bytes, weight: rendering.weight(of:))
        ) : FeedPage(postponing: token)
      json.beginObject()
      json.key("moreComing")
      json.boolean(page.isMoreComing)
      json.key("records")
      try write(page, options.feed, rendering, to: &json)
      json.member("syncToken", try tokens.seal(page.token, context))
      json.member("zoneID", zones.id(named: options.zoneID.zoneName))
      json.endObject()
    }
  }

  /// The rows that a page needs, to prefetch them in one query.
  ///
  /// A token has the zone and the position, so with one the prefetch is complete.
  private func prefetchedReads(
    _ options: ZoneChangesOptions,
    _ token: ChangeToken?,
    _ context: RequestContext,
    _ bytes: Int
  ) throws -> [PrefetchedRead] {
    guard context.scope == .private else { return [] }
    let id = try databases.partition(context)
    var reads: [PrefetchedRead] = [.zones(id, named: [options.zoneID.zoneName]), .database(id)]
    if let token, let zone = token.zone, token.partition == id, bytes > 0,
      // An invalid value is reported later, when the option is checked.
      let limit = try? limits.pageSize(options.feed.resultsLimit)
    {
      let range = FeedPage.range(
        token,
        isReversed: options.feed.reverse ?? false,
        includesDeleted: options.feed.includesDeleted ?? false,
        limit: limit
      )
      reads.append(.changes(id, range.changes(of: zone)))
    }
    return reads
  }

  /// Throws if tombstones that the token needs have been removed, or if the participation in a
  /// shared zone began again.
  private func checkFreshness(
    _ token: ChangeToken,
    _ row: StoredZone?,
    _ reader: Reader
  ) throws(ErrorDictionary) {
    guard !token.isFirst || token.began != nil else { return }
    guard max(token.counter, token.began ?? .zero) >= row?.horizon ?? .zero,
      token.participation == reader.wholeSince
    else { throw ChangeTokens.expired() }
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
      case .departed(let key, let type): json.record(rendering.tombstone(key, type))
      case .hidden: continue
      }
    }
    json.endArray()
  }
}
