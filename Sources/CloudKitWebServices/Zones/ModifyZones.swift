import Foundation

/// One operation of `zones/modify`.
package struct ZoneOperation: Codable, Hashable, Sendable {
  package var operationType: ZoneOperationType
  package var zone: ZoneDictionary

  package init(
    operationType: ZoneOperationType,
    zone: ZoneDictionary
  ) {
    self.operationType = operationType
    self.zone = zone
  }
}

/// The body of `zones/modify`.
package struct ModifyZonesRequest: Codable, Hashable, Sendable {
  package var operations: [ZoneOperation]

  package init(
    operations: [ZoneOperation]
  ) {
    self.operations = operations
  }
}

/// The reply of `zones/list`, `zones/lookup` and `zones/modify`.
package struct ZonesResponse: Codable, Hashable, Sendable {
  package var zones: [ItemResult<ZoneDictionary>]

  package init(
    zones: [ItemResult<ZoneDictionary>]
  ) {
    self.zones = zones
  }
}

/// The body of `zones/lookup`; the array contains the zone IDs directly.
package struct LookupZonesRequest: Codable, Hashable, Sendable {
  package var zones: [ZoneID]

  package init(
    zones: [ZoneID]
  ) {
    self.zones = zones
  }

  private enum CodingKeys: String, CodingKey { case zones }

  /// Some clients wrap each ID as in `zones/modify`.
  private struct Entry: Decodable {
    var zoneID: ZoneID

    private enum CodingKeys: String, CodingKey { case zoneID }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      zoneID =
        try container.decodeIfPresent(ZoneID.self, forKey: .zoneID) ?? ZoneID(from: decoder)
    }
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    zones = try container.decode([Entry].self, forKey: .zones).map(\.zoneID)
  }
}
