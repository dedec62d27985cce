import Foundation

/// The body of `assets/rereference`.
package struct RereferenceAssetsRequest: Codable, Hashable, Sendable {
  package var assets: [AssetLocation]
  package var zoneID: ZoneID?
  package var targetZoneID: ZoneID?

  package init(
    assets: [AssetLocation],
    zoneID: ZoneID? = nil,
    targetZoneID: ZoneID? = nil
  ) {
    self.assets = assets
    self.zoneID = zoneID
    self.targetZoneID = targetZoneID
  }
}

/// The field that holds an asset.
package struct AssetLocation: Codable, Hashable, Sendable {
  package var recordName: String
  package var fieldName: String
  package var recordType: String?

  package init(
    recordName: String,
    fieldName: String,
    recordType: String? = nil
  ) {
    self.recordName = recordName
    self.fieldName = fieldName
    self.recordType = recordType
  }
}

/// The reply of `assets/rereference`, in the order of the request.
package struct RereferenceAssetsResponse: Codable, Hashable, Sendable {
  package var assets: [ItemResult<AssetValue>]

  package init(
    assets: [ItemResult<AssetValue>]
  ) {
    self.assets = assets
  }
}
