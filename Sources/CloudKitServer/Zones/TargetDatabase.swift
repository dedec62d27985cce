import CloudKitWebServices

/// The database of a request's zones: the caller's own, the public one, or that of an owner who
/// shares with the caller.
struct TargetDatabase: Sendable {
  var id: PartitionID
  /// The user record name; empty for the public database.
  var owner: String
  /// The requested zones, as far as the caller may see them.
  var rows: [StoredZone]
  var access: DatabaseAccess

  func sees(_ record: StoredRecord) -> Bool { access.sees(record) }
}

/// The databases of one request's zones.
struct TargetDatabases: Sendable {
  var byOwner: [String: TargetDatabase]
  /// Whether all zones are in one database, regardless of the owner that they name.
  var isOne: Bool

  func owner(of zone: ZoneID) -> String { isOne ? "" : zone.ownerRecordName ?? "" }

  func database(of zone: ZoneID) throws -> TargetDatabase {
    guard let database = byOwner[owner(of: zone)] else {
      throw ErrorDictionary(.zoneNotFound, "Zone '\(zone.zoneName)' does not exist", zoneID: zone)
    }
    return database
  }
}

/// A zone that another owner shares with the caller, or did.
struct SharedZone: Sendable {
  var partition: PartitionID
  var owner: String
  var row: StoredZone
  var view: ZoneView

  var isOpen: Bool { row.ending == nil && view.isOpen }
}
