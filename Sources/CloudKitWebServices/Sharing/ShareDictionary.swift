/// What a share has beyond other records; its keys stand among those of the record dictionary.
package struct ShareDictionary: Codable, Hashable, Sendable {
  /// In a request that makes a hierarchical share: its root.
  package var forRecord: SharedRootDictionary?
  package var publicPermission: ParticipantPermission?
  /// The owner among them.
  ///
  /// In a request it is the whole list: who is missing is removed.
  package var participants: [ShareParticipant]?
  package var owner: ShareParticipant?
  package var currentUserParticipant: ShareParticipant?
  /// Who asks to be let in; in replies to those who may invite.
  ///
  /// In a request it is the whole list: who is missing, and no participant, is refused.
  package var requesters: [ShareParticipant]?
  /// Whose asking is not heard; in replies to those who may invite.
  ///
  /// In a request it is the whole list: who is missing may ask again.
  package var blocked: [ShareParticipant]?
  /// Whether nobody may ask.
  package var denyAccessRequests: Bool?
  /// The address people open, in replies.
  package var stableUrl: StableURL?
  package var displayedHostname: String?

  package init(
    forRecord: SharedRootDictionary? = nil,
    publicPermission: ParticipantPermission? = nil,
    participants: [ShareParticipant]? = nil,
    owner: ShareParticipant? = nil,
    currentUserParticipant: ShareParticipant? = nil,
    requesters: [ShareParticipant]? = nil,
    blocked: [ShareParticipant]? = nil,
    denyAccessRequests: Bool? = nil,
    stableUrl: StableURL? = nil,
    displayedHostname: String? = nil
  ) {
    self.forRecord = forRecord
    self.publicPermission = publicPermission
    self.participants = participants
    self.owner = owner
    self.currentUserParticipant = currentUserParticipant
    self.requesters = requesters
    self.blocked = blocked
    self.denyAccessRequests = denyAccessRequests
    self.stableUrl = stableUrl
    self.displayedHostname = displayedHostname
  }

  /// The record type of shares.
  package static let recordType = "cloudkit.share"
  /// The record name of the share of a whole zone.
  package static let zoneShareName = "cloudkit.zoneshare"
}

/// The parts of a share's address.
package struct StableURL: Codable, Hashable, Sendable {
  package var routingKey: String?
  package var shortTokenHash: String?
  package var displayedHostname: String?

  package init(
    routingKey: String? = nil,
    shortTokenHash: String? = nil,
    displayedHostname: String? = nil
  ) {
    self.routingKey = routingKey
    self.shortTokenHash = shortTokenHash
    self.displayedHostname = displayedHostname
  }
}

/// The root that a share is made for.
package struct SharedRootDictionary: Codable, Hashable, Sendable {
  package var recordName: String
  /// The root as its owner knows it; another tag on the server is a conflict.
  package var recordChangeTag: String?

  package init(recordName: String, recordChangeTag: String? = nil) {
    self.recordName = recordName
    self.recordChangeTag = recordChangeTag
  }
}

/// Keeps what few records have out of the size of all.
package indirect enum ShareBox: Hashable, Sendable {
  case value(ShareDictionary)

  package var dictionary: ShareDictionary {
    switch self {
    case .value(let dictionary): dictionary
    }
  }
}
