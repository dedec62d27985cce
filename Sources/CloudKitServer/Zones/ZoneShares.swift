import CloudKitWebServices

extension StorageSnapshot {
  /// The zones of the caller's own database that are shared as a whole.
  func wholeShares(
    of zones: [StoredZone],
    in id: PartitionID
  ) throws -> Set<ZoneNumber> {
    let keys = zones.filter { $0.ending == nil }.map {
      RecordKey(zone: $0.number, name: ShareDictionary.zoneShareName)
    }
    guard !keys.isEmpty else { return [] }
    return Set(
      try shares(in: id, keys: keys) { $0.isDeleted ? nil : $0.key.zone }
        .compactMap { $0 }
    )
  }

  /// The participants in shares of zones that are being deleted.
  func participants(
    of zones: [StoredZone],
    in id: PartitionID,
    pageSize: Int
  ) throws -> [String] {
    var users: Set<String> = []
    for zone in zones where zone.ending == nil {
      var name = ""
      while true {
        let page = try shares(
          in: id,
          zone: zone.number,
          after: name,
          limit: pageSize
        ) { share in
          (share.key.name, try share.decodedSharing()?.state?.acceptedUsers ?? [])
        }
        for (_, accepted) in page { users.formUnion(accepted) }
        guard page.count == pageSize, let last = page.last else { break }
        name = last.0
      }
    }
    return users.sorted()
  }
}

extension ReferenceValue {
  /// The share of a whole zone.
  static func wholeShare(of zone: ZoneID) -> ReferenceValue {
    ReferenceValue(recordName: ShareDictionary.zoneShareName, zoneID: zone)
  }
}
