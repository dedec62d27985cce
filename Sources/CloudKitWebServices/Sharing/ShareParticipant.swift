/// A participant of a share.
package struct ShareParticipant: Hashable, Sendable {
  package var participantId: String?
  package var type: ParticipantType?
  package var acceptanceStatus: ParticipantStatus?
  package var permission: ParticipantPermission?
  /// The participant's identity, or in a request a look-up: `lookupInfo` or `userRecordName`.
  package var userIdentity: UserIdentity?
  /// Whether the participant had requested access: an extension, in replies.
  package var isApprovedRequester: Bool?

  package init(
    participantId: String? = nil,
    type: ParticipantType? = nil,
    acceptanceStatus: ParticipantStatus? = nil,
    permission: ParticipantPermission? = nil,
    userIdentity: UserIdentity? = nil,
    isApprovedRequester: Bool? = nil
  ) {
    self.participantId = participantId
    self.type = type
    self.acceptanceStatus = acceptanceStatus
    self.permission = permission
    self.userIdentity = userIdentity
    self.isApprovedRequester = isApprovedRequester
  }
}

extension ShareParticipant: Codable {
  private enum CodingKeys: String, CodingKey {
    case participantId, type, acceptanceStatus, permission, userIdentity, isApprovedRequester
    /// The spelling of some libraries.
    case participantID
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    participantId =
      try container.decodeIfPresent(String.self, forKey: .participantId)
      ?? container.decodeIfPresent(String.self, forKey: .participantID)
    type = try container.decodeIfPresent(ParticipantType.self, forKey: .type)
    acceptanceStatus = try container.decodeIfPresent(
      ParticipantStatus.self,
      forKey: .acceptanceStatus
    )
    permission = try container.decodeIfPresent(ParticipantPermission.self, forKey: .permission)
    userIdentity = try container.decodeIfPresent(UserIdentity.self, forKey: .userIdentity)
    isApprovedRequester = try container.decodeIfPresent(Bool.self, forKey: .isApprovedRequester)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(participantId, forKey: .participantId)
    try container.encodeIfPresent(type, forKey: .type)
    try container.encodeIfPresent(acceptanceStatus, forKey: .acceptanceStatus)
    try container.encodeIfPresent(permission, forKey: .permission)
    try container.encodeIfPresent(userIdentity.map(KnownIdentity.init), forKey: .userIdentity)
    try container.encodeIfPresent(isApprovedRequester, forKey: .isApprovedRequester)
  }
}

/// A user's identity without its unknown members, as shares contain it: one existing client refuses
/// the empty members of `users/caller`.
private struct KnownIdentity: Encodable {
  var identity: UserIdentity

  init(_ identity: UserIdentity) { self.identity = identity }

  private enum Keys: String, CodingKey { case userRecordName, nameComponents, lookupInfo }
  private enum LookupKeys: String, CodingKey { case emailAddress, phoneNumber, userRecordName }
  private enum NameKeys: String, CodingKey {
    case givenName, familyName, middleName, namePrefix, nameSuffix, nickname
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Keys.self)
    try container.encodeIfPresent(identity.userRecordName, forKey: .userRecordName)
    if let names = identity.nameComponents {
      var parts = container.nestedContainer(keyedBy: NameKeys.self, forKey: .nameComponents)
      try parts.encodeIfPresent(names.givenName, forKey: .givenName)
      try parts.encodeIfPresent(names.familyName, forKey: .familyName)
      try parts.encodeIfPresent(names.middleName, forKey: .middleName)
      try parts.encodeIfPresent(names.namePrefix, forKey: .namePrefix)
      try parts.encodeIfPresent(names.nameSuffix, forKey: .nameSuffix)
      try parts.encodeIfPresent(names.nickname, forKey: .nickname)
    }
    if let info = identity.lookupInfo {
      var lookup = container.nestedContainer(keyedBy: LookupKeys.self, forKey: .lookupInfo)
      try lookup.encodeIfPresent(info.emailAddress, forKey: .emailAddress)
      try lookup.encodeIfPresent(info.phoneNumber, forKey: .phoneNumber)
      // The identity has the same value already.
      if info.userRecordName != identity.userRecordName {
        try lookup.encodeIfPresent(info.userRecordName, forKey: .userRecordName)
      }
    }
  }
}
