import Foundation

/// The name of a zone and, if it is not the caller's own, its owner.
package struct ZoneID: Codable, Hashable, Sendable {
  package var zoneName: String
  /// Absent in requests for the caller's own zones.
  package var ownerRecordName: String?
  /// `REGULAR_CUSTOM_ZONE` or `DEFAULT_ZONE`, in replies.
  package var zoneType: String?

  package init(
    zoneName: String,
    ownerRecordName: String? = nil,
    zoneType: String? = nil
  ) {
    self.zoneName = zoneName
    self.ownerRecordName = ownerRecordName
    self.zoneType = zoneType
  }

  package static let defaultZoneName = "_defaultZone"
  package static let defaultZone = ZoneID(zoneName: defaultZoneName)

  package var isDefault: Bool { zoneName == Self.defaultZoneName }

  /// The owner of the public database, which clients expect in a zone's ID.
  package static let publicOwner = "_defaultOwner"

  /// Whether the text is one that clients write for the caller, instead of a record name.
  package static func isCaller(_ owner: String) -> Bool {
    owner.isEmpty || owner == publicOwner || owner == "__defaultOwner__"
  }

  private enum CodingKeys: String, CodingKey {
    case zoneName, ownerRecordName, ownerName, zoneType
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    zoneName = try container.decode(String.self, forKey: .zoneName)
    // Some clients follow a description of the service with the key `ownerName`.
    ownerRecordName =
      try container.decodeIfPresent(String.self, forKey: .ownerRecordName)
      ?? container.decodeIfPresent(String.self, forKey: .ownerName)
    zoneType = try container.decodeIfPresent(String.self, forKey: .zoneType)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(zoneName, forKey: .zoneName)
    try container.encodeIfPresent(ownerRecordName, forKey: .ownerRecordName)
    try container.encodeIfPresent(zoneType, forKey: .zoneType)
  }
}
