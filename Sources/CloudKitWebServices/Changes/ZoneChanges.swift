import Foundation

/// The options for one zone in `changes/zone`, and the whole body of `records/changes`.
package struct ZoneChangesOptions: Codable, Hashable, Sendable {
  package var zoneID: ZoneID
  package var syncToken: String?
  package var feed: FeedOptions

  package init(zoneID: ZoneID, syncToken: String? = nil, feed: FeedOptions = FeedOptions()) {
    self.zoneID = zoneID
    self.syncToken = syncToken
    self.feed = feed
  }

  private enum CodingKeys: String, CodingKey {
    case zoneID, syncToken
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    zoneID = try container.decode(ZoneID.self, forKey: .zoneID)
    syncToken = try container.decodeIfPresent(String.self, forKey: .syncToken)
    feed = try FeedOptions(from: decoder)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(zoneID, forKey: .zoneID)
    try container.encodeIfPresent(syncToken, forKey: .syncToken)
    try feed.encode(to: encoder)
  }
}

/// The body of `changes/zone`.
package struct ZoneChangesRequest: Codable, Hashable, Sendable {
  package var zones: [ZoneChangesOptions]
  /// The default options of all zones.
  package var feed: FeedOptions

  package init(zones: [ZoneChangesOptions], feed: FeedOptions = FeedOptions()) {
    self.zones = zones
    self.feed = feed
  }

  private enum CodingKeys: String, CodingKey {
    case zones
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    zones = try container.decode([ZoneChangesOptions].self, forKey: .zones)
    feed = try FeedOptions(from: decoder)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(zones, forKey: .zones)
    try feed.encode(to: encoder)
  }
}

/// The changes of one zone; also the whole reply of `records/changes`.
package struct ZoneChanges: Codable, Hashable, Sendable {
  package var zoneID: ZoneID?
  package var records: [ItemResult<RecordDictionary>]
  package var syncToken: String?
  /// Apple's replies can have null here.
  package var moreComing: Bool?

  package init(
    zoneID: ZoneID? = nil,
    records: [ItemResult<RecordDictionary>],
    syncToken: String? = nil,
    moreComing: Bool? = nil
  ) {
    self.zoneID = zoneID
    self.records = records
    self.syncToken = syncToken
    self.moreComing = moreComing
  }
}

/// The reply of `changes/zone`.
package struct ZoneChangesResponse: Codable, Hashable, Sendable {
  package var zones: [ItemResult<ZoneChanges>]

  package init(
    zones: [ItemResult<ZoneChanges>]
  ) {
    self.zones = zones
  }
}
