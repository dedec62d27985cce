import Foundation

/// What is asked of one zone in `changes/zone`, and the whole body of `records/changes`.
package struct ZoneChangesOptions: Codable, Hashable, Sendable {
  package var zoneID: ZoneID
  package var syncToken: String?
  package var desiredKeys: [String]?
  package var desiredRecordTypes: [String]?
  package var resultsLimit: Int?
  /// Newest first.
  package var reverse: Bool?
  package var numbersAsStrings: Bool?

  package init(
    zoneID: ZoneID,
    syncToken: String? = nil,
    desiredKeys: [String]? = nil,
    desiredRecordTypes: [String]? = nil,
    resultsLimit: Int? = nil,
    reverse: Bool? = nil,
    numbersAsStrings: Bool? = nil
  ) {
    self.zoneID = zoneID
    self.syncToken = syncToken
    self.desiredKeys = desiredKeys
    self.desiredRecordTypes = desiredRecordTypes
    self.resultsLimit = resultsLimit
    self.reverse = reverse
    self.numbersAsStrings = numbersAsStrings
  }

  private enum CodingKeys: String, CodingKey {
    case zoneID, syncToken, desiredKeys, desiredRecordTypes, resultsLimit, reverse
    case numbersAsStrings, numberAsStrings
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    zoneID = try container.decode(ZoneID.self, forKey: .zoneID)
    syncToken = try container.decodeIfPresent(String.self, forKey: .syncToken)
    desiredKeys = try container.decodeIfPresent([String].self, forKey: .desiredKeys)
    desiredRecordTypes = try container.decodeIfPresent([String].self, forKey: .desiredRecordTypes)
    resultsLimit = try container.decodeIfPresent(Int.self, forKey: .resultsLimit)
    reverse = try container.decodeIfPresent(Bool.self, forKey: .reverse)
    // The documentation spells the key both ways.
    numbersAsStrings =
      try container.decodeIfPresent(Bool.self, forKey: .numbersAsStrings)
      ?? container.decodeIfPresent(Bool.self, forKey: .numberAsStrings)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(zoneID, forKey: .zoneID)
    try container.encodeIfPresent(syncToken, forKey: .syncToken)
    try container.encodeIfPresent(desiredKeys, forKey: .desiredKeys)
    try container.encodeIfPresent(desiredRecordTypes, forKey: .desiredRecordTypes)
    try container.encodeIfPresent(resultsLimit, forKey: .resultsLimit)
    try container.encodeIfPresent(reverse, forKey: .reverse)
    try container.encodeIfPresent(numbersAsStrings, forKey: .numbersAsStrings)
  }
}

/// The body of `changes/zone`; its own keys are defaults for the zones'.
package struct ZoneChangesRequest: Codable, Hashable, Sendable {
  package var zones: [ZoneChangesOptions]
  package var desiredKeys: [String]?
  package var desiredRecordTypes: [String]?
  package var resultsLimit: Int?
  /// Newest first.
  package var reverse: Bool?
  package var numbersAsStrings: Bool?

  package init(
    zones: [ZoneChangesOptions],
    desiredKeys: [String]? = nil,
    desiredRecordTypes: [String]? = nil,
    resultsLimit: Int? = nil,
    reverse: Bool? = nil,
    numbersAsStrings: Bool? = nil
  ) {
    self.zones = zones
    self.desiredKeys = desiredKeys
    self.desiredRecordTypes = desiredRecordTypes
    self.resultsLimit = resultsLimit
    self.reverse = reverse
    self.numbersAsStrings = numbersAsStrings
  }

  private enum CodingKeys: String, CodingKey {
    case zones, desiredKeys, desiredRecordTypes, resultsLimit, reverse
    case numbersAsStrings, numberAsStrings
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    zones = try container.decode([ZoneChangesOptions].self, forKey: .zones)
    desiredKeys = try container.decodeIfPresent([String].self, forKey: .desiredKeys)
    desiredRecordTypes = try container.decodeIfPresent([String].self, forKey: .desiredRecordTypes)
    resultsLimit = try container.decodeIfPresent(Int.self, forKey: .resultsLimit)
    reverse = try container.decodeIfPresent(Bool.self, forKey: .reverse)
    // The documentation spells the key both ways.
    numbersAsStrings =
      try container.decodeIfPresent(Bool.self, forKey: .numbersAsStrings)
      ?? container.decodeIfPresent(Bool.self, forKey: .numberAsStrings)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(zones, forKey: .zones)
    try container.encodeIfPresent(desiredKeys, forKey: .desiredKeys)
    try container.encodeIfPresent(desiredRecordTypes, forKey: .desiredRecordTypes)
    try container.encodeIfPresent(resultsLimit, forKey: .resultsLimit)
    try container.encodeIfPresent(reverse, forKey: .reverse)
    try container.encodeIfPresent(numbersAsStrings, forKey: .numbersAsStrings)
  }
}

/// What changed in one zone; also the whole reply of `records/changes`.
package struct ZoneChanges: Codable, Hashable, Sendable {
  package var zoneID: ZoneID?
  package var records: [ItemResult<RecordDictionary>]
  package var syncToken: String?
  /// Seen as null in real replies.
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
