import CloudKitWebServices
import Foundation

extension CloudKitService {
  func listZones(_ context: RequestContext) async throws -> Data {
    try await reads.run(for: context) { [self] control in
      let zones = try zones(of: context, control)
      return try WireCoding.encode(ZonesResponse(zones: zones.map { .success($0) }))
    }
  }

  private func zones(
    of context: RequestContext,
    _ control: ReadControl
  ) throws -> [ZoneDictionary] {
    var zones: [ZoneDictionary] = []
    switch context.scope {
    case .public: zones = [defaultZone(context)]
    case .private:
      let id = try databases.partition(context)
      zones = [defaultZone(context)]
      let (rows, shared) = try storage.read(control) { snapshot in
        let rows = try snapshot.livingZones(in: id)
        return (rows, try wholeShares(of: rows, id, snapshot))
      }
      zones += try rows.map {
        try dictionary(
          $0,
          id,
          owner: context.reader,
          isShared: shared.contains($0.number),
          context
        )
      }
    case .shared:
      let user = try context.participant()
      zones = try storage.read(control) { snapshot in
        try databases.openZones(databases.shareLinks(context, snapshot), user, snapshot).map {
          try dictionary(
            $0.row,
            $0.partition,
            owner: $0.owner,
            view: $0.view,
            isShared: $0.view.isWhole,
            context
          )
        }
      }
    }
    return zones
  }

  func lookupZones(_ request: LookupZonesRequest, _ context: RequestContext) async throws -> Data {
    try limits.checkCount(request.zones.count)
    return try await reads.run(for: context) { [self] control in
      try zones(request, context, control)
    }
  }

  private func zones(
    _ request: LookupZonesRequest,
    _ context: RequestContext,
    _ control: ReadControl
  ) throws -> Data {
    let (databases, shared) = try storage.read(control) { snapshot in
      let databases = try self.databases.targets(of: request.zones, context, snapshot)
      let own = context.scope == .private ? databases.byOwner.values.first : nil
      return (databases, try own.map { try wholeShares(of: $0.rows, $0.id, snapshot) } ?? [])
    }
    let results = try request.zones.map { zone -> ItemResult<ZoneDictionary> in
      do {
        let database = try databases.database(of: zone)
        let zones = ZoneDirectory(database, context)
        let number = try zones.number(of: zone)
        guard number != .defaultZone, let row = zones.row(named: zone.zoneName) else {
          return .success(defaultZone(context))
        }
        return .success(
          try dictionary(
            row,
            database.id,
            owner: database.owner,
            view: database.views?[number],
            isShared: database.views?[number]?.isWhole ?? shared.contains(number),
            context
          )
        )
      } catch let error as ErrorDictionary {
        return .failure(context.stripped(error))
      }
    }
    return try WireCoding.encode(ZonesResponse(zones: results))
  }

  func modifyZones(_ request: ModifyZonesRequest, _ context: RequestContext) async throws -> Data {
    try limits.checkCount(request.operations.count)
    _ = try context.user()
    guard context.scope == .private else {
      throw ErrorDictionary(
        .badRequest,
        "zones cannot be modified in the \(context.scope.rawValue) database"
      )
    }
    let id = try databases.partition(context)
    let creations = request.operations.count { $0.operationType == .create }
    if creations > 0 {
      try await quotas.check(context, id)
      quotas.add(200 * Int64(creations), in: id)
    }
    let limits = limits
    let (results, note) = try await write(to: id) { [self] () -> (WriteBatch?, ZonesOutcome) in
      let (database, rows, count, guests) = try storage.read { snapshot in
        let names = request.operations.map(\.zone.zoneID.zoneName)
        let rows = try snapshot.zones(in: id, named: names)
        let deleted = request.operations.filter { $0.operationType == .delete }
          .map(\.zone.zoneID.zoneName)
        return (
          try snapshot.database(id),
          rows,
          try snapshot.livingZones(in: id).count,
          try participants(of: rows.filter { deleted.contains($0.name) }, id, snapshot)
        )
      }
      var plan = ZonePlan(
        id: id,
        database: database,
        rows: rows,
        livingCount: count,
        limits: limits
      )
      let results = request.operations.map { plan.apply($0, context) }
      guard var batch = plan.batch else { return (nil, (results, nil)) }
      var note = delivery.note(context, partition: id, owner: context.reader, device: nil)
      note.zones = plan.changedNames
      note.guests = guests
      try delivery.post(&note, in: &batch)
      return (batch, (results, note))
    }
    if let note {
      if creations < request.operations.count { quotas.noteDeletion(context, id) }
      delivery.announce(note)
    }
    let saved = results.compactMap { if case .saved(let row) = $0 { row } else { nil } }
    let shared = try storage.read { try wholeShares(of: saved, id, $0) }
    let items = try results.map { result -> ItemResult<ZoneDictionary> in
      switch result {
      case .saved(let row):
        .success(
          try dictionary(
            row,
            id,
            owner: context.reader,
            isShared: shared.contains(row.number),
            context
          )
        )
      case .deleted(let zone): .success(ZoneDictionary(zoneID: zone, deleted: true))
      case .failed(let error): .failure(context.stripped(error))
      }
    }
    return try WireCoding.encode(ZonesResponse(zones: items))
  }

  private typealias ZonesOutcome = ([ZonePlan.Result], CommitNotification?)

  /// The participants in shares of zones that are being deleted.
  func participants(
    of zones: [StoredZone],
    _ id: PartitionID,
    _ snapshot: any StorageSnapshot
  ) throws -> [String] {
    var users: Set<String> = []
    for zone in zones where zone.ending == nil {
      var name = ""
      while true {
        let page = try snapshot.shares(
          in: id,
          zone: zone.number,
          after: name,
          limit: limits.itemsPerRequest
        ) { share in
          (share.key.name, try share.decodedSharing()?.state?.acceptedUsers ?? [])
        }
        for (_, accepted) in page { users.formUnion(accepted) }
        guard page.count == limits.itemsPerRequest, let last = page.last else { break }
        name = last.0
      }
    }
    return users.sorted()
  }

  /// Deletes a zone on behalf of its owner or an administrator; clients with the capability header
  /// receive the reason.
  package func endZone(
    named name: String,
    container: String,
    environment: ContainerEnvironment,
    userRecordName: String,
    ending: StoredZone.Ending
  ) async throws {
    let id = try storage.partition(
      PartitionKey(
        container: container,
        environment: environment,
        scope: .private,
        owner: userRecordName
      )
    )
    let note = try await write(to: id) { [self] () -> (WriteBatch?, CommitNotification?) in
      let (database, rows, guests) = try storage.read { snapshot in
        let rows = try snapshot.zones(in: id, named: [name])
        return (try snapshot.database(id), rows, try participants(of: rows, id, snapshot))
      }
      guard var row = rows.first, row.ending == nil else { return (nil, nil) }
      row.ending = ending
      row.change = database.counter.next
      var batch = WriteBatch(partition: id)
      batch.expectedCounter = database.counter
      batch.counter = row.change
      batch.emptiedZones = [row.number]
      batch.zones = [row]
      var note = CommitNotification(
        process: delivery.process,
        container: container,
        environment: environment,
        scope: .private,
        owner: userRecordName,
        partition: id,
        author: userRecordName
      )
      note.zones = [name]
      note.guests = guests
      try delivery.post(&note, in: &batch)
      return (batch, note)
    }
    if let note { delivery.announce(note) }
  }

  private func defaultZone(_ context: RequestContext) -> ZoneDictionary {
    ZoneDictionary(
      zoneID: ZoneDirectory.id(
        named: ZoneID.defaultZoneName,
        owner: context.scope == .public ? "" : context.reader
      ),
      atomic: false,
      deleted: false,
      isEligibleForZoneShare: false,
      isEligibleForHierarchicalShare: false
    )
  }

  private func dictionary(
    _ row: StoredZone,
    _ id: PartitionID,
    owner: String,
    view: ZoneView? = nil,
    isShared: Bool,
    _ context: RequestContext
  ) throws -> ZoneDictionary {
    let zoneID = ZoneDirectory.id(named: row.name, owner: owner)
    return ZoneDictionary(
      zoneID: zoneID,
      syncToken: try seal(
        ChangeToken(zone: row.number, id, counter: row.change, participation: view?.wholeSince),
        context
      ),
      atomic: true,
      deleted: false,
      isEligibleForZoneShare: view == nil,
      isEligibleForHierarchicalShare: view == nil && !isShared,
      share: isShared ? Self.wholeShare(of: zoneID) : nil
    )
  }

  // MARK: Shares of whole zones

  /// The zones of the caller's own database that are shared as a whole.
  func wholeShares(
    of zones: [StoredZone],
    _ id: PartitionID,
    _ snapshot: any StorageSnapshot
  ) throws -> Set<ZoneNumber> {
    let keys = zones.filter { $0.ending == nil }.map {
      RecordKey(zone: $0.number, name: ShareDictionary.zoneShareName)
    }
    guard !keys.isEmpty else { return [] }
    return Set(
      try snapshot.shares(in: id, keys: keys) { $0.isDeleted ? nil : $0.key.zone }
        .compactMap { $0 }
    )
  }

  static func wholeShare(of zone: ZoneID) -> ReferenceValue {
    ReferenceValue(recordName: ShareDictionary.zoneShareName, zoneID: zone)
  }
}

extension RequestContext {
  /// The error for this client: extensions only for clients that requested them, zones with their
  /// full ID, and one key that identifies its subject, as clients of the documented formats expect.
  func stripped(_ error: ErrorDictionary) -> ErrorDictionary {
    var error = error
    error.zoneID = error.zoneID.map(written)
    guard !isExtended else { return error }
    error.extension = nil
    if error.recordName != nil || error.subscriptionID != nil { error.zoneID = nil }
    return error
  }

  /// A zone's ID as in replies, also if there is no such zone.
  private func written(_ zone: ZoneID) -> ZoneID {
    let owner = zone.ownerRecordName.flatMap { ZoneID.isCaller($0) ? nil : $0 }
    return ZoneDirectory.id(named: zone.zoneName, owner: owner ?? (scope == .public ? "" : reader))
  }
}
