import CloudKitWebServices
import Foundation

/// Maps the names of one request's zones to rows, and back.
struct ZoneDirectory: Sendable {
  private let rows: [String: StoredZone]
  private let context: RequestContext
  private let owner: String

  init(_ database: TargetDatabase, _ context: RequestContext) {
    self.init(database.rows, context, owner: database.owner)
  }

  init(_ rows: [StoredZone], _ context: RequestContext, owner: String) {
    self.rows = Dictionary(rows.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
    self.context = context
    self.owner = owner
  }

  /// The zone's number; throws if the zone does not exist.
  func number(of zone: ZoneID) throws(ErrorDictionary) -> ZoneNumber {
    // In the shared database a zone that is not shared with the caller is treated as missing.
    guard zone.ownerRecordName == nil || isOwner(zone.ownerRecordName) else {
      throw missing(
        zone,
        context.scope == .shared
          ? "Zone '\(zone.zoneName)' does not exist"
          : "zone '\(zone.zoneName)' belongs to another user"
      )
    }
    if zone.isDefault, context.scope != .shared { return .defaultZone }
    guard let row = rows[zone.zoneName] else {
      throw missing(zone, "Zone '\(zone.zoneName)' does not exist")
    }
    switch row.ending {
    case nil: return row.number
    case .deleted: throw missing(zone, "Zone '\(zone.zoneName)' does not exist")
    case .purged:
      throw missing(zone, "Zone '\(zone.zoneName)' was purged", .zonePurged)
    case .userDeleted:
      throw missing(zone, "Zone '\(zone.zoneName)' was deleted by the user", .userDeletedZone)
    case .encryptedDataReset:
      throw missing(
        zone,
        "Zone '\(zone.zoneName)' is gone: its owner's encrypted data was reset",
        .encryptedDataReset
      )
    }
  }

  func row(named name: String) -> StoredZone? { rows[name] }

  func name(of number: ZoneNumber) -> String? {
    number == .defaultZone
      ? ZoneID.defaultZoneName : rows.values.first { $0.number == number }?.name
  }

  private func isOwner(_ owner: String?) -> Bool {
    if context.scope == .public || owner == self.owner { return true }
    return context.scope == .private && owner.map { ZoneID.isCaller($0) } ?? true
  }

  private func missing(
    _ zone: ZoneID,
    _ reason: String,
    _ code: ErrorExtensionCode? = nil
  ) -> ErrorDictionary {
    ErrorDictionary(
      .zoneNotFound,
      reason,
      zoneID: zone,
      extension: code.map { ErrorExtension(code: $0) }
    )
  }

  /// The IDs of all zones that a record of the reply may be in, as JSON.
  func encodedIDs() -> [ZoneNumber: Data] {
    var known = [ZoneNumber.defaultZone: ZoneID.defaultZoneName]
    for row in rows.values { known[row.number] = row.name }
    return known.mapValues { name in
      var json = JSONWriter(capacity: 160)
      json.zone(id(named: name))
      return json.finished()
    }
  }

  /// The zone's ID as in replies.
  func id(named name: String) -> ZoneID { Self.id(named: name, owner: owner) }

  static func id(named name: String, owner: String) -> ZoneID {
    ZoneID(
      zoneName: name,
      ownerRecordName: owner.isEmpty ? ZoneID.publicOwner : owner,
      zoneType: name == ZoneID.defaultZoneName ? "DEFAULT_ZONE" : "REGULAR_CUSTOM_ZONE"
    )
  }
}
