import CloudKitWebServices
import Foundation

/// The zone endpoints.
package final class ZoneService: Sendable {
  private let storage: any Storage
  private let writer: StorageWriter
  private let databases: DatabaseLookup
  private let reads: BoundedReads
  private let quotas: DatabaseQuotas
  private let delivery: NotificationDelivery
  private let tokens: ChangeTokens
  private let limits: ServiceLimits

  init(
    storage: any Storage,
    writer: StorageWriter,
    databases: DatabaseLookup,
    reads: BoundedReads,
    quotas: DatabaseQuotas,
    delivery: NotificationDelivery,
    tokens: ChangeTokens,
    limits: ServiceLimits
  ) {
    self.storage = storage
    self.writer = writer
    self.databases = databases
    self.reads = reads
    self.quotas = quotas
    self.delivery = delivery
    self.tokens = tokens
    self.limits = limits
  }

  func list(_ context: RequestContext) async throws -> Data {
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
        return (rows, try snapshot.wholeShares(of: rows, in: id))
      }
      zones += try rows.map {
        try dictionary(
          $0,
          id,
          owner: context.userName,
          reader: .owner,
          isShared: shared.contains($0.number),
          context
        )
      }
    case .shared:
      let reader = try context.participant()
      zones = try storage.read(control) { snapshot in
        try databases.openZones(databases.shareLinks(context, snapshot), reader, snapshot).map {
          try dictionary(
            $0.row,
            $0.partition,
            owner: $0.owner,
            reader: .participant($0.view),
            isShared: $0.view.isWhole,
            context
          )
        }
      }
    }
    return zones
  }

  func lookup(_ request: LookupZonesRequest, _ context: RequestContext) async throws -> Data {
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
      return (databases, try own.map { try snapshot.wholeShares(of: $0.rows, in: $0.id) } ?? [])
    }
    let results = try request.zones.map { zone -> ItemResult<ZoneDictionary> in
      do {
        let database = try databases.database(of: zone)
        let zones = ZoneDirectory(database, context)
        let number = try zones.number(of: zone)
        guard number != .defaultZone, let row = zones.row(named: zone.zoneName) else {
          return .success(defaultZone(context))
        }
        let reader = database.access.reader(of: number)
        let isShared =
          switch reader {
          case .owner: shared.contains(number)
          case .participant(let view): view.isWhole
          }
        return .success(
          try dictionary(
            row,
            database.id,
            owner: database.owner,
            reader: reader,
            isShared: isShared,
            context
          )
        )
      } catch let error as ErrorDictionary {
        return .failure(context.stripped(error))
      }
    }
    return try WireCoding.encode(ZonesResponse(zones: results))
  }

  func modify(_ request: ModifyZonesRequest, _ context: RequestContext) async throws -> Data {
    try limits.checkCount(request.operations.count)
    _ = try context.user()
    guard context.scope == .private else {
      throw ErrorDictionary(
        .badRequest,
        "zones cannot be modified in the \(context.scope.rawValue) database"
      )
    }
    let id = try databases.partition(context)
    var outcome = try await modify(request, context, id, mayCreate: false)
    if outcome.needsRoom {
      // A full database refuses a zone that does not exist yet, and returns one that does: a new device
      // of its user needs the zone to read it, and to delete something.
      try await quotas.check(context, id)
      outcome = try await modify(request, context, id, mayCreate: true)
      quotas.add(200 * Int64(outcome.createdCount), in: id)
    }
    if let note = outcome.note {
      let isDeleting = request.operations.contains { $0.operationType == .delete }
      if isDeleting { quotas.noteDeletion(context, id) }
      delivery.announce(note)
    }
    return try reply(outcome.results, id, context)
  }

  /// The result of `zones/modify`.
  private struct ModifyOutcome: Sendable {
    var results: [ZonePlan.Result] = []
    var note: CommitNotification?
    var createdCount = 0
    /// Nothing was written, since the request creates zones and the quota was not checked.
    var needsRoom = false
  }

  /// Writes the operations, unless they create zones and may not.
  private func modify(
    _ request: ModifyZonesRequest,
    _ context: RequestContext,
    _ id: PartitionID,
    mayCreate: Bool
  ) async throws -> ModifyOutcome {
    let limits = limits
    return try await writer.write(to: id) { [self] () -> (WriteBatch?, ModifyOutcome) in
      let (database, rows, count, guests) = try storage.read { snapshot in
        let names = request.operations.map(\.zone.zoneID.zoneName)
        let rows = try snapshot.zones(in: id, named: names)
        let deleted = request.operations.filter { $0.operationType == .delete }
          .map(\.zone.zoneID.zoneName)
        return (
          try snapshot.database(id),
          rows,
          try snapshot.livingZones(in: id).count,
          try snapshot.participants(
            of: rows.filter { deleted.contains($0.name) },
            in: id,
            pageSize: limits.itemsPerRequest
          )
        )
      }
      var plan = ZonePlan(
        id: id,
        database: database,
        rows: rows,
        livingCount: count,
        limits: limits
      )
      var outcome = ModifyOutcome()
      outcome.results = request.operations.map { plan.apply($0, context) }
      outcome.createdCount = plan.createdCount
      outcome.needsRoom = plan.createdCount > 0 && !mayCreate
      guard !outcome.needsRoom, var batch = plan.batch else { return (nil, outcome) }
      var note = delivery.note(context, partition: id, owner: context.userName, device: nil)
      note.zones = plan.changedNames
      note.guests = guests
      try delivery.post(&note, in: &batch)
      outcome.note = note
      return (batch, outcome)
    }
  }

  /// The reply to `zones/modify`.
  private func reply(
    _ results: [ZonePlan.Result],
    _ id: PartitionID,
    _ context: RequestContext
  ) throws -> Data {
    let saved = results.compactMap { if case .saved(let row) = $0 { row } else { nil } }
    let shared = try storage.read { try $0.wholeShares(of: saved, in: id) }
    let items = try results.map { result -> ItemResult<ZoneDictionary> in
      switch result {
      case .saved(let row):
        .success(
          try dictionary(
            row,
            id,
            owner: context.userName,
            reader: .owner,
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

  /// Deletes a zone on behalf of its owner or an administrator; clients with the capability header
  /// receive the reason.
  package func end(
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
    let note = try await writer.write(to: id) { [self] () -> (WriteBatch?, CommitNotification?) in
      let (database, rows, guests) = try storage.read { snapshot in
        let rows = try snapshot.zones(in: id, named: [name])
        return (
          try snapshot.database(id), rows,
          try snapshot.participants(of: rows, in: id, pageSize: limits.itemsPerRequest)
        )
      }
      guard var row = rows.first, row.ending == nil else { return (nil, nil) }
      row.ending = ending
      row.change = database.counter.next
      var batch = WriteBatch(partition: id)
      batch.expectedCounter = database.counter
      batch.counter = row.change
      batch.emptiedZones = [row.number]
      batch.removalStep = limits.removalStep
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
        owner: context.scope == .public ? "" : context.userName
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
    reader: Reader,
    isShared: Bool,
    _ context: RequestContext
  ) throws -> ZoneDictionary {
    let zoneID = ZoneDirectory.id(named: row.name, owner: owner)
    let isOwner = if case .owner = reader { true } else { false }
    return ZoneDictionary(
      zoneID: zoneID,
      syncToken: try tokens.seal(
        ChangeToken(
          zone: row.number,
          id,
          counter: row.change,
          participation: reader.wholeSince
        ),
        context
      ),
      atomic: true,
      deleted: false,
      isEligibleForZoneShare: isOwner,
      isEligibleForHierarchicalShare: isOwner && !isShared,
      share: isShared ? .wholeShare(of: zoneID) : nil
    )
  }
}
