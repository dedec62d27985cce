import CloudKitWebServices

/// A share in replies.
extension ShareState {
  /// The keys that a share has besides those of other records, for one reader.
  ///
  /// `person` is the reader, if they may be invited by an address and have not accepted yet.
  func dictionary(
    for reader: ReaderID,
    as person: SharePerson? = nil,
    host: String
  ) -> ShareDictionary {
    let mayInvite = reader.user.map(mayInvite) ?? false
    let me = person.flatMap { participant($0) } ?? reader.user.flatMap { participant(named: $0) }
    // A participant who joined by the link, or a visitor, sees only the owner and themselves.
    let seesAll = mayInvite || (me != nil && me?.type != .publicUser)
    func shown(_ participant: StoredParticipant) -> ShareParticipant {
      var shown = participant
      // Participants always see their own entry.
      if participant.id == me?.id { shown.isHidden = nil }
      if participant.type == .publicUser { shown.permission = publicPermission }
      if !mayInvite { shown.wasRequester = nil }
      return shown.dictionary(showsContact: mayInvite || participant.id == me?.id)
    }
    return ShareDictionary(
      publicPermission: publicPermission,
      participants: participants.filter {
        seesAll || $0.type == .owner || $0.id == me?.id
      }.map(shown),
      owner: owner.map(shown),
      currentUserParticipant: me.map(shown),
      requesters: mayInvite ? requests?.requesters.map(\.dictionary) ?? [] : nil,
      blocked: mayInvite ? requests?.blocked.map(\.dictionary) ?? [] : nil,
      denyAccessRequests: requests?.isOpen != true,
      stableUrl: StableURL(
        routingKey: "0",
        shortTokenHash: TokenDigest.of(shortGUID),
        displayedHostname: host
      ),
      displayedHostname: host
    )
  }
}
