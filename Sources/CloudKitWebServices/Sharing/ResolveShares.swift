/// The body of `records/resolve` and `records/accept`.
package struct ShortGUIDsRequest: Codable, Hashable, Sendable {
  package var shortGUIDs: [ShortGUID]

  package init(shortGUIDs: [ShortGUID]) {
    self.shortGUIDs = shortGUIDs
  }
}

/// A share's short ID, and the options for its reply.
package struct ShortGUID: Hashable, Sendable {
  package var value: String
  package var shouldFetchRootRecord: Bool?
  package var rootRecordDesiredKeys: [String]?

  package init(
    value: String,
    shouldFetchRootRecord: Bool? = nil,
    rootRecordDesiredKeys: [String]? = nil
  ) {
    self.value = value
    self.shouldFetchRootRecord = shouldFetchRootRecord
    self.rootRecordDesiredKeys = rootRecordDesiredKeys
  }
}

extension ShortGUID: Codable {
  private enum CodingKeys: String, CodingKey {
    case value, shouldFetchRootRecord, rootRecordDesiredKeys
  }

  /// The short ID of a text that may be the whole link: CloudKit JS sends what the app has.
  private static func value(of text: String) -> String {
    let parts = text.prefix(before: "#").prefix(before: "?").split(ascii: "/")
    guard let place = parts.lastIndex(of: "share"), place + 1 < parts.count else { return text }
    return String(parts[place + 1])
  }

  /// A bare string is a short ID without options.
  package init(from decoder: any Decoder) throws {
    if let text = try? decoder.singleValueContainer().decode(String.self) {
      self.init(value: Self.value(of: text))
      return
    }
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      value: Self.value(of: try container.decode(String.self, forKey: .value)),
      shouldFetchRootRecord: try container.decodeIfPresent(
        Bool.self,
        forKey: .shouldFetchRootRecord
      ),
      rootRecordDesiredKeys: try container.decodeIfPresent(
        [String].self,
        forKey: .rootRecordDesiredKeys
      )
    )
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(value, forKey: .value)
    try container.encodeIfPresent(shouldFetchRootRecord, forKey: .shouldFetchRootRecord)
    try container.encodeIfPresent(rootRecordDesiredKeys, forKey: .rootRecordDesiredKeys)
  }
}

/// The reply of `records/resolve` and `records/accept`, one item per short ID.
package struct ShareMetadataResponse: Codable, Hashable, Sendable {
  package var results: [ItemResult<ShareMetadata>]

  package init(results: [ItemResult<ShareMetadata>]) {
    self.results = results
  }
}

/// The metadata of a share, resolved by its short ID.
package struct ShareMetadata: Codable, Hashable, Sendable {
  package var shortGUID: ShortGUID
  package var containerIdentifier: String
  package var environment: String
  /// `PRIVATE` if the caller is the owner, else `SHARED`.
  package var databaseScope: String
  package var zoneID: ZoneID
  /// For a share of a whole zone: the share's own name.
  package var rootRecordName: String
  /// Present if it was requested and the caller may read it.
  package var rootRecord: RecordDictionary?
  package var share: RecordDictionary
  package var ownerIdentity: UserIdentity
  package var participantType: ParticipantType
  package var participantStatus: ParticipantStatus
  package var participantPermission: ParticipantPermission
  package var potentialMatchList: [PotentialMatch]?
  package var webpageURL: String?
  /// Present for a share that anyone may read, resolved without a sign-in.
  package var anonymousPublicAccess: AnonymousPublicAccess?
  /// Whether only invited users may open the share.
  package var requireAppleLogin: Bool?

  package init(
    shortGUID: ShortGUID,
    containerIdentifier: String,
    environment: String,
    databaseScope: String,
    zoneID: ZoneID,
    rootRecordName: String,
    rootRecord: RecordDictionary? = nil,
    share: RecordDictionary,
    ownerIdentity: UserIdentity,
    participantType: ParticipantType,
    participantStatus: ParticipantStatus,
    participantPermission: ParticipantPermission,
    potentialMatchList: [PotentialMatch]? = nil,
    webpageURL: String? = nil,
    anonymousPublicAccess: AnonymousPublicAccess? = nil,
    requireAppleLogin: Bool? = nil
  ) {
    self.shortGUID = shortGUID
    self.containerIdentifier = containerIdentifier
    self.environment = environment
    self.databaseScope = databaseScope
    self.zoneID = zoneID
    self.rootRecordName = rootRecordName
    self.rootRecord = rootRecord
    self.share = share
    self.ownerIdentity = ownerIdentity
    self.participantType = participantType
    self.participantStatus = participantStatus
    self.participantPermission = participantPermission
    self.potentialMatchList = potentialMatchList
    self.webpageURL = webpageURL
    self.anonymousPublicAccess = anonymousPublicAccess
    self.requireAppleLogin = requireAppleLogin
  }
}

/// An invitation that may be addressed to the caller.
package struct PotentialMatch: Codable, Hashable, Sendable {
  package var participantId: String
  package var contactInformation: LookupInfo

  package init(participantId: String, contactInformation: LookupInfo) {
    self.participantId = participantId
    self.contactInformation = contactInformation
  }
}

/// The token for reading a public share without a sign-in.
package struct AnonymousPublicAccess: Codable, Hashable, Sendable {
  package var token: String
  package var databasePartition: String

  package init(token: String, databasePartition: String) {
    self.token = token
    self.databasePartition = databasePartition
  }
}
