import CloudKitWebServices

/// Finds the databases that a request may read or write.
struct DatabaseLookup: Sendable {
  private let storage: any Storage
  private let limits: ServiceLimits

  init(_ storage: any Storage, _ limits: ServiceLimits) {
    self.storage = storage
    self.limits = limits
  }

  func partition(_ context: RequestContext) throws -> PartitionID {
    if let visit = context.caller.visit { return PartitionID(rawValue: visit.partition) }
    let key = PartitionKey(
      container: context.container,
      environment: context.environment,
      scope: context.scope,
      owner: try context.owner()
    )
    // An API token may be for all containers: for a name that its bearer made up, no rows are
    // created.
    guard context.principal != nil else {
      return try storage.knownPartition(key) ?? .empty
    }
    return try storage.partition(key)
  }

  /// Finds the database of zones that have one owner.
  ///
  /// For the shared database, rights are read in the owner's database, here and on every request: a
  /// link only locates it. Links to the owner's shares that the caller has read already are not
  /// read again.
  func target(
    of zones: [ZoneID],
    _ context: RequestContext,
    _ snapshot: any StorageSnapshot,
    knowing known: [StoredShareLink]? = nil
  ) throws -> TargetDatabase {
    let names = Set(zones.map(\.zoneName)).sorted()
    guard context.scope == .shared else {
      let id = try partition(context)
      return TargetDatabase(
        id: id,
        owner: try context.owner(),
        rows: try snapshot.zones(in: id, named: names),
        access: .whole
      )
    }
    let reader = try context.participant()
    let owners = Set(zones.map { $0.ownerRecordName ?? "" })
    guard owners.count <= 1 else {
      throw ErrorDictionary(.badRequest, "the zones of one request belong to one owner")
    }
    let links = try (known ?? shareLinks(context, of: owners.first, snapshot)).filter {
      owners.contains($0.owner) && names.contains($0.zoneName)
    }
    var target = TargetDatabase(
      id: try links.first?.partition ?? partition(context),
      owner: owners.first ?? "",
      rows: [],
      access: .shared([:])
    )
    var views: [ZoneNumber: ZoneView] = [:]
    for zone in try openZones(links, reader, snapshot) {
      target.rows.append(zone.row)
      views[zone.row.number] = zone.view
    }
    target.access = .shared(views)
    return target
  }

  /// Resolves zones that may have different owners; see `target`.
  func targets(
    of zones: [ZoneID],
    _ context: RequestContext,
    _ snapshot: any StorageSnapshot
  ) throws -> TargetDatabases {
    guard context.scope == .shared else {
      return TargetDatabases(byOwner: ["": try target(of: zones, context, snapshot)], isOne: true)
    }
    var byOwner: [String: TargetDatabase] = [:]
    let owners = Dictionary(grouping: zones, by: { $0.ownerRecordName ?? "" })
    // Once for all owners: a request may name many, and a user may have many links.
    let links =
      owners.count > 1
      ? Dictionary(grouping: try shareLinks(context, snapshot), by: \.owner) : nil
    for (owner, zones) in owners {
      byOwner[owner] = try target(
        of: zones,
        context,
        snapshot,
        knowing: links.map { $0[owner] ?? [] }
      )
    }
    return TargetDatabases(byOwner: byOwner, isOne: false)
  }

  /// The zones of links that the reader may access now.
  func openZones(
    _ links: [StoredShareLink],
    _ reader: ReaderID,
    _ snapshot: any StorageSnapshot
  ) throws -> [SharedZone] {
    try linkedZones(links, reader, snapshot).filter { $0.isOpen }
  }

  /// The zones of links, in the order of their partitions and numbers.
  func linkedZones(
    _ links: [StoredShareLink],
    _ reader: ReaderID,
    _ snapshot: any StorageSnapshot
  ) throws -> [SharedZone] {
    var zones: [SharedZone] = []
    let byPartition = Dictionary(grouping: links, by: \.partition)
    for (id, links) in byPartition.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      let rows = try snapshot.zones(in: id, named: Set(links.map(\.zoneName)).sorted())
      let byZone = Dictionary(grouping: links, by: \.zone)
      for (number, links) in byZone.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
        guard let link = links.first else { continue }
        let row = rows.first { $0.number == number && $0.ending == nil }
        var parts: [ZoneView.Part] = []
        // A zone that has ended may still have rows, which are not read.
        let count = row == nil ? 0 : links.count
        for start in stride(from: 0, to: count, by: limits.itemsPerRequest) {
          let page = links[start..<min(start + limits.itemsPerRequest, links.count)]
          parts += try snapshot.shares(
            in: id,
            keys: page.map { RecordKey(zone: number, name: $0.share) }
          ) { try ZoneView.Part($0, for: reader) }.compactMap { $0 }
        }
        zones.append(
          SharedZone(
            partition: id,
            owner: link.owner,
            row: row
              ?? StoredZone(number: number, name: link.zoneName, change: .zero, ending: .deleted),
            view: ZoneView(of: parts)
          )
        )
      }
    }
    return zones
  }

  /// The caller's links to shares of one owner, or of all.
  func shareLinks(
    _ context: RequestContext,
    of owner: String? = nil,
    _ snapshot: any StorageSnapshot
  ) throws -> [StoredShareLink] {
    if let visit = context.caller.visit { return [visit.link] }
    return try snapshot.shareLinks(
      container: context.container,
      environment: context.environment,
      user: try context.user().userRecordName,
      owner: owner
    )
  }
}
