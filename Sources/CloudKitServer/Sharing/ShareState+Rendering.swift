import CloudKitWebServices

/// A share as replies show it.
extension ShareState {
  /// The keys that a share has beyond other records, for one reader.
  func dictionary(for reader: String, host: String) -> ShareDictionary {
    let mayInvite = mayInvite(reader)
    let me = participant(named: reader)
    // Who came by the link, or only looks at it, sees the owner and themselves.
    let seesAll = mayInvite || (me != nil && me?.type != .publicUser)
    func shown(_ participant: StoredParticipant) -> ShareParticipant {
      var shown = participant
      if participant.type == .publicUser { shown.permission = publicPermission }
      return shown.dictionary(showsContact: mayInvite || participant.user == reader)
    }
    return ShareDictionary(
      publicPermission: publicPermission,
      participants: participants.filter {
        seesAll || $0.type == .owner || $0.user == reader
      }.map(shown),
      owner: owner.map(shown),
      currentUserParticipant: me.map(shown),
      stableUrl: StableURL(
        routingKey: "0",
        shortTokenHash: CloudKitService.digest(shortGUID),
        displayedHostname: host
      ),
      displayedHostname: host
    )
  }
}
