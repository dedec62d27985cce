import CloudKitWebServices

/// Decides the result of `zones/modify`, operation by operation.
struct ZonePlan {
  enum Result: Sendable {
    case saved(StoredZone)
    case deleted(ZoneID)
    case failed(ErrorDictionary)
  }

  private let id: PartitionID
  private let expectedCounter: ChangeNumber
  private let limits: ServiceLimits
  private var counter: ChangeNumber
  private var rows: [String: StoredZone]
  private var livingCount: Int
  private var emptied: [ZoneNumber] = []
  private(set) var changedNames: [String] = []
  /// The number of zones that did not exist before.
  private(set) var createdCount = 0

  init(
    id: PartitionID,
    database: StoredDatabase,
    rows: [StoredZone],
    livingCount: Int,
    limits: ServiceLimits
  ) {
    self.id = id
    expectedCounter = database.counter
    counter = database.counter
    self.rows = Dictionary(rows.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
    self.livingCount = livingCount
    self.limits = limits
  }

  /// The batch to write; nil if nothing changes.
  var batch: WriteBatch? {
    guard !changedNames.isEmpty else { return nil }
    var batch = WriteBatch(partition: id)
    batch.expectedCounter = expectedCounter
    batch.counter = counter
    batch.zones = Set(changedNames).sorted().compactMap { rows[$0] }
    batch.emptiedZones = emptied
    batch.removalStep = limits.removalStep
    return batch
  }

  mutating func apply(_ operation: ZoneOperation, _ context: RequestContext) -> Result {
    let zone = operation.zone.zoneID
    let name = zone.zoneName
    if let owner = zone.ownerRecordName, !ZoneID.isCaller(owner),
      owner != context.principal?.userRecordName
    {
      return .failed(ErrorDictionary(.accessDenied, "the zone is not yours", zoneID: zone))
    }
    guard !zone.isDefault else {
      return .failed(
        ErrorDictionary(.badRequest, "the default zone is always there", zoneID: zone)
      )
    }
    switch operation.operationType {
    case .create: return create(name, zone)
    case .delete:
      guard var row = rows[name], row.ending == nil else {
        return .failed(
          ErrorDictionary(.zoneNotFound, "Zone '\(name)' does not exist", zoneID: zone)
        )
      }
      counter = counter.next
      row.change = counter
      row.ending = .deleted
      rows[name] = row
      emptied.append(row.number)
      changedNames.append(name)
      livingCount -= 1
      return .deleted(ZoneDirectory.id(named: name, owner: context.userName))
    }
  }

  private mutating func create(_ name: String, _ zone: ZoneID) -> Result {
    // As native clients expect, saving an existing zone succeeds.
    if let row = rows[name], row.ending == nil { return .saved(row) }
    guard NameRules.isZoneName(name, limits) else {
      return .failed(ErrorDictionary(.badRequest, "invalid zone name", zoneID: zone))
    }
    guard livingCount < limits.zonesPerDatabase else {
      return .failed(
        ErrorDictionary(
          .badRequest,
          "a database has at most \(limits.zonesPerDatabase) zones",
          zoneID: zone,
          extension: ErrorExtension(code: .limitExceeded)
        )
      )
    }
    counter = counter.next
    let row = StoredZone(
      number: ZoneNumber(counter.rawValue),
      name: name,
      change: counter,
      ending: nil
    )
    rows[name] = row
    changedNames.append(name)
    createdCount += 1
    livingCount += 1
    return .saved(row)
  }
}
