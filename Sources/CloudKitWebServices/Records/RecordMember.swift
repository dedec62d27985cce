/// The members that a record has on the wire.
///
/// They are the coding keys of `RecordDictionary`. The fast reader and writer spell them too; tests compare both with
/// this list.
package enum RecordMember: String, CodingKey, CaseIterable {
  case recordName, recordType, recordChangeTag, fields, zoneID, created, modified, deleted
  case parent, share, shortGUID, createShortGUID, pluginFields
  // The members that shares alone have.
  case forRecord, publicPermission, participants, owner
  case requesters, blocked, denyAccessRequests, sharingBase
  case currentUserParticipant, stableUrl, displayedHostname

  /// The members that identify a share in a request or reply: each one contains at least one of
  /// them.
  package static let ofShares: [RecordMember] = [
    .forRecord, .publicPermission, .participants, .owner, .requesters, .blocked,
    .denyAccessRequests, .sharingBase,
  ]

  /// The names of members that the fast reader leaves to `JSONDecoder`: those of shares, which are rare, and that of an
  /// error, which can replace a record.
  static let needingDecoder = Set(ofShares.map(\.rawValue) + ["serverErrorCode"])

  /// The members of replies that no request has; readers skip them.
  package static let ofReplies: [RecordMember] = [
    .pluginFields, .currentUserParticipant, .stableUrl, .displayedHostname,
  ]
}
