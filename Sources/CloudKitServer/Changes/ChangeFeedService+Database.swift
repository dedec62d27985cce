import CloudKitWebServices
import Foundation

/// The feed of a database: the zones that have changed.
extension ChangeFeedService {
  /// `changes/database`, or the older `zones/changes` with its own name for the token.
  func databaseChanges(
    _ request: DatabaseChangesRequest,
    _ context: RequestContext,
    isOlder: Bool = false
  ) async throws -> Data {
    _ = try context.participant()
    guard context.scope != .public else {
      throw ErrorDictionary(.badRequest, "the public database has no changes")
    }
    let id = try databases.partition(context)
    let token = try tokens.open(request.syncToken ?? request.metaSyncToken)
    let limit = try limits.pageSize(request.resultsLimit)
    var response = try await reads.run(.scan, for: context) { [self] control in
      try storage.read(control) { snapshot in
        context.scope == .shared
          ? try sharedChanges(token, id, limit, context, snapshot)
          : try privateChanges(token, id, limit, context, snapshot)
      }
    }
    // Strict clients of `changes/database` refuse an unknown key.
    if isOlder { response.metaSyncToken = response.syncToken }
    return try WireCoding.encode(response)
  }

  private func privateChanges(
    _ sent: ChangeToken?,
    _ id: PartitionID,
    _ limit: Int,
    _ context: RequestContext,
    _ snapshot: any StorageSnapshot
  ) throws -> DatabaseChangesResponse {
    let database = try snapshot.database(id)
    let token = try tokens.check(sent, zone: nil, id, counter: database.counter, context)
    var rows = try snapshot.zones(in: id, changedAfter: token.zoneListPosition, limit: limit + 1)
    let isMoreComing = rows.count > limit
    if isMoreComing { rows.removeLast() }
    var next = ChangeToken(zone: nil, id, counter: database.counter)
    if isMoreComing {
      // Also within one change: the zones that one batch wrote may be on two pages.
      next.zoneListPosition =
        rows.last.map { ZoneListPosition(change: $0.change, zone: $0.number) }
        ?? token.zoneListPosition
      next.seen = max(token.seen ?? .zero, database.counter)
      // The pages of a first listing omit zones that were created and deleted before it.
      next.began = token.began ?? (token.isFirst ? database.counter : nil)
    }
    let isFirst = token.isFirst || token.began != nil
    // Strict clients of this reply refuse undocumented keys.
    let shared = context.isExtended ? try snapshot.wholeShares(of: rows, in: id) : []
    let zones = rows.compactMap { row -> ItemResult<ZoneDictionary>? in
      if row.ending != nil, isFirst, row.change <= token.began ?? database.counter { return nil }
      var zone = ZoneDictionary(
        zoneID: ZoneDirectory.id(named: row.name, owner: context.userName),
        deleted: row.ending != nil
      )
      if shared.contains(row.number) { zone.share = .wholeShare(of: zone.zoneID) }
      if context.isExtended, let code = row.ending?.code {
        zone.extension = ErrorExtension(code: code)
      }
      return .success(zone)
    }
    return DatabaseChangesResponse(
      zones: zones,
      syncToken: try tokens.seal(next, context),
      moreComing: isMoreComing
    )
  }

  // MARK: The shared database

  /// A client's position in a zone that is shared with it, by partition and zone.
  private struct KnownZone: Hashable {
    var partition: PartitionID
    var zone: ZoneNumber
  }

  private func sharedChanges(
    _ sent: ChangeToken?,
    _ id: PartitionID,
    _ limit: Int,
    _ context: RequestContext,
    _ snapshot: any StorageSnapshot
  ) throws -> DatabaseChangesResponse {
    let reader = try context.participant()
    let token = try tokens.check(sent, zone: nil, id, counter: ChangeNumber(.max), context)
    var known: [KnownZone: ChangeNumber] = [:]
    let numbers = token.sharedZones ?? []
    for index in stride(from: 0, to: numbers.count - numbers.count % 3, by: 3) {
      let zone = KnownZone(
        partition: PartitionID(rawValue: numbers[index]),
        zone: ZoneNumber(numbers[index + 1])
      )
      known[zone] = ChangeNumber(numbers[index + 2])
    }
    let links = try databases.shareLinks(context, snapshot)
    let zones = try databases.linkedZones(links, reader, snapshot)
    let linked = Set(zones.map { KnownZone(partition: $0.partition, zone: $0.row.number) })
    // The zone belonged to an account that was purged so long ago that its links were removed too:
    // even its name is no longer known. Without a token the client lists the zones that are left.
    guard known.keys.allSatisfy(linked.contains) else { throw ChangeTokens.expired() }
    let open = Set(zones.filter(\.isOpen).map { "\($0.owner)/\($0.row.name)" })
    var results: [ItemResult<ZoneDictionary>] = []
    var isMoreComing = false
    for zone in zones {
      let key = KnownZone(partition: zone.partition, zone: zone.row.number)
      let zoneID = ZoneDirectory.id(named: zone.row.name, owner: zone.owner)
      let showsShare = context.isExtended && zone.isOpen && zone.view.isWhole
      let dictionary = ZoneDictionary(
        zoneID: zoneID,
        deleted: !zone.isOpen,
        share: showsShare ? .wholeShare(of: zoneID) : nil
      )
      let newest = zone.isOpen ? try newestChange(in: zone, snapshot) : nil
      if let newest {
        guard known[key].map({ $0 < newest }) ?? true else { continue }
      } else {
        guard known[key] != nil else { continue }
        // The owner shares another zone of that name, so the name was not deleted.
        if open.contains("\(zone.owner)/\(zone.row.name)") {
          known[key] = nil
          continue
        }
      }
      guard results.count < limit else {
        isMoreComing = true
        break
      }
      known[key] = newest
      results.append(.success(dictionary))
    }
    var next = ChangeToken(zone: nil, id, counter: ChangeNumber(1))
    next.sharedZones = known.sorted {
      ($0.key.partition.rawValue, $0.key.zone.rawValue)
        < ($1.key.partition.rawValue, $1.key.zone.rawValue)
    }.flatMap { [$0.key.partition.rawValue, $0.key.zone.rawValue, $0.value.rawValue] }
    return DatabaseChangesResponse(
      zones: results,
      syncToken: try tokens.seal(next, context),
      moreComing: isMoreComing
    )
  }

  /// The newest change that a participant can see in a zone: the owner's other changes there are
  /// not visible.
  private func newestChange(
    in zone: SharedZone,
    _ snapshot: any StorageSnapshot
  ) throws -> ChangeNumber {
    if zone.view.isWhole { return max(zone.row.change, zone.view.wholeSince ?? .zero) }
    let feed = ZoneFeed(
      snapshot: snapshot,
      partition: zone.partition,
      zone: zone.row.number,
      reader: .participant(zone.view)
    )
    let newest = try feed.items(
      ZoneFeed.Range(after: .start, isReversed: true, limit: 1)
    ).first?.position.change
    let participations = zone.view.participations.flatMap { [$0.joined, $0.left ?? .zero] }
    return max(newest ?? .zero, participations.max() ?? .zero)
  }
}

extension StoredZone.Ending {
  /// The error code for clients with the capability header.
  var code: ErrorExtensionCode? {
    switch self {
    case .deleted: nil
    case .purged: .zonePurged
    case .userDeleted: .userDeletedZone
    case .encryptedDataReset: .encryptedDataReset
    }
  }
}
