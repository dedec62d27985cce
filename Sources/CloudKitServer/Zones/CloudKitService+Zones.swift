import CloudKitWebServices
import Foundation

extension CloudKitService {
  func listZones(_ context: RequestContext) async throws -> Data {
    let id = try partition(context)
    var zones: [ZoneDictionary] = []
    if context.scope != .shared {
      zones.append(defaultZone(context))
    }
    if context.scope == .private {
      zones += try storage.read { try $0.livingZones(in: id) }.map { try dictionary($0, context) }
    }
    return try WireCoding.encode(ZonesResponse(zones: zones.map { .success($0) }))
  }

  func lookupZones(_ request: LookupZonesRequest, _ context: RequestContext) async throws -> Data {
    try checkCount(request.zones.count)
    let id = try partition(context)
    let zones = try ZoneDirectory(storage, id, context, names: request.zones)
    let results = try request.zones.map { zone -> ItemResult<ZoneDictionary> in
      do {
        let number = try zones.number(of: zone)
        guard number != .defaultZone, let row = zones.row(named: zone.zoneName) else {
          return .success(defaultZone(context))
        }
        return .success(try dictionary(row, context))
      } catch let error as ErrorDictionary {
        return .failure(context.stripped(error))
      }
    }
    return try WireCoding.encode(ZonesResponse(zones: results))
  }

  func modifyZones(_ request: ModifyZonesRequest, _ context: RequestContext) async throws -> Data {
    try checkCount(request.operations.count)
    _ = try context.user()
    guard context.scope == .private else {
      throw ErrorDictionary(
        .badRequest,
        "zones cannot be modified in the \(context.scope.rawValue) database"
      )
    }
    let id = try partition(context)
    let limits = limits
    let (results, changed) = try await write { [storage] () -> (WriteBatch?, ZonesOutcome) in
      let (database, rows, count) = try storage.read { snapshot in
        (
          try snapshot.database(id),
          try snapshot.zones(in: id, named: request.operations.map(\.zone.zoneID.zoneName)),
          try snapshot.livingZones(in: id).count
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
      return (plan.batch, (results, plan.changedNames))
    }
    if !changed.isEmpty { announce(context, zones: changed, saved: 0, deleted: 0) }
    let items = try results.map { result -> ItemResult<ZoneDictionary> in
      switch result {
      case .saved(let row): .success(try dictionary(row, context))
      case .deleted(let zone): .success(ZoneDictionary(zoneID: zone, deleted: true))
      case .failed(let error): .failure(context.stripped(error))
      }
    }
    return try WireCoding.encode(ZonesResponse(zones: items))
  }

  private typealias ZonesOutcome = ([ZonePlan.Result], [String])

  /// Ends a zone on behalf of its owner or an administrator; clients with the capability header
  /// learn the reason.
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
    try await write { [storage] in
      let (database, rows) = try storage.read {
        (try $0.database(id), try $0.zones(in: id, named: [name]))
      }
      guard var row = rows.first, row.ending == nil else { return (nil, ()) }
      row.ending = ending
      row.change = database.counter.next
      var batch = WriteBatch(partition: id)
      batch.expectedCounter = database.counter
      batch.counter = row.change
      batch.emptiedZones = [row.number]
      batch.zones = [row]
      return (batch, ())
    }
  }

  func checkCount(_ count: Int) throws(ErrorDictionary) {
    guard count <= limits.itemsPerRequest else {
      throw ErrorDictionary(
        .badRequest,
        "a request has at most \(limits.itemsPerRequest) items, this one has \(count)",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
  }

  private func defaultZone(_ context: RequestContext) -> ZoneDictionary {
    ZoneDictionary(
      zoneID: ZoneDirectory.id(named: ZoneID.defaultZoneName, context),
      atomic: false,
      deleted: false
    )
  }

  private func dictionary(_ row: StoredZone, _ context: RequestContext) throws -> ZoneDictionary {
    let id = try partition(context)
    return ZoneDictionary(
      zoneID: ZoneDirectory.id(named: row.name, context),
      syncToken: try seal(ChangeToken(zone: row.number, id, counter: row.change), context),
      atomic: true,
      deleted: false
    )
  }
}

extension RequestContext {
  /// The error as this client may see it: extensions only for those who asked.
  func stripped(_ error: ErrorDictionary) -> ErrorDictionary {
    var error = error
    if !isExtended { error.extension = nil }
    return error
  }
}
