/// The members of a share that other records lack; on the wire they are in the record dictionary.
package struct ShareDictionary: Codable, Hashable, Sendable {
  /// The root of a new hierarchical share, in the request that creates it.
  package var forRecord: SharedRootDictionary?
  package var publicPermission: ParticipantPermission?
  /// The participants, including the owner.
  ///
  /// In a request it is the complete list: a participant who is missing is removed. If the
  /// request has a `sharingBase`, only participants in it are removed.
  package var participants: [ShareParticipant]?
  package var owner: ShareParticipant?
  package var currentUserParticipant: ShareParticipant?
  /// The users who requested access; only replies to the owner and administrators contain them.
  ///
  /// In a request it is the complete list: a requester who is missing, and is not a participant, is
  /// denied.
  package var requesters: [ShareParticipant]?
  /// The blocked users, whose access requests are ignored; only replies to the owner and
  /// administrators contain them.
  ///
  /// In a request it is the complete list: a user who is missing may request access again.
  package var blocked: [ShareParticipant]?
  /// What the caller's copy had before its edits, in a request; an extension.
  package var sharingBase: SharingBase?
  /// Whether access requests are turned off.
  package var denyAccessRequests: Bool?
  /// The link for users to open, in replies.
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
    sharingBase: SharingBase? = nil,
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
    self.sharingBase = sharingBase
    self.denyAccessRequests = denyAccessRequests
    self.stableUrl = stableUrl
    self.displayedHostname = displayedHostname
  }

  /// The record type of shares.
  package static let recordType = "cloudkit.share"
  /// The record name of the share of a whole zone.
  package static let zoneShareName = "cloudkit.zoneshare"
}

/// The permissions of a share as a client fetched them, with which it sends its edited list.
///
/// The difference is the edit: a save from an older copy then neither removes the people who were
/// added or joined meanwhile, nor puts permissions back that it did not change.
package struct SharingBase: Codable, Hashable, Sendable {
  package var publicPermission: ParticipantPermission
  /// The participants' IDs, types and permissions.
  package var participants: [ShareParticipant]

  package init(publicPermission: ParticipantPermission, participants: [ShareParticipant]) {
    self.publicPermission = publicPermission
    self.participants = participants
  }
}

/// The parts of a share's link.
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

/// The root of a new share.
package struct SharedRootDictionary: Codable, Hashable, Sendable {
  package var recordName: String
  /// The change tag of the owner's copy of the root; a different tag on the server is a conflict.
  package var recordChangeTag: String?

  package init(recordName: String, recordChangeTag: String? = nil) {
    self.recordName = recordName
    self.recordChangeTag = recordChangeTag
  }
}

/// Stores the rare members of shares outside the record's own memory.
package indirect enum ShareBox: Hashable, Sendable {
  case value(ShareDictionary)

  package var dictionary: ShareDictionary {
    switch self {
    case .value(let dictionary): dictionary
    }
  }
}
