import CloudKitWebServices

/// The changes of a save of the share by its owner, or by a participant who may invite.
extension ShareState {
  /// The values that an edit needs.
  struct Edit {
    var participantLimit: Int
    var blockedLimit: Int
    /// Bytes of each text that identifies a person.
    var textLimit = Int.max
    var newID: () -> String
    /// Finds a person of the container.
    var person: (LookupInfo) -> SharePerson?
  }

  mutating func apply(_ request: ShareDictionary, _ edit: Edit) throws(ErrorDictionary) {
    let request = merged(request)
    let wasPublic = publicPermission.canRead
    if let permission = request.publicPermission {
      guard permission != .unknown else {
        throw ErrorDictionary(.badRequest, "invalid value for 'publicPermission'")
      }
      publicPermission = permission
    }
    if let entries = request.participants {
      try replaceParticipants(
        entries,
        keepsKnown: !wasPublic || publicPermission.canRead,
        edit
      )
    } else if wasPublic, !publicPermission.canRead {
      remove(edit) { _ in true }
    }
    // Anyone with the link may join, so pending invitations are obsolete.
    if publicPermission.canRead, !wasPublic { remove(edit) { $0.status == .invited } }
    try answer(request, blockedLimit: edit.blockedLimit)
    guard participants.count - 1 <= edit.participantLimit else {
      throw Self.full(edit.participantLimit)
    }
  }

  /// The request as an edit of the present state, if it has the state that its client edited.
  ///
  /// A client that saves regardless of the server's version may have an older copy. Only what
  /// differs from that copy is an edit: the others keep what they have now.
  private func merged(_ request: ShareDictionary) -> ShareDictionary {
    guard let base = request.sharingBase else { return request }
    var request = request
    if request.publicPermission == base.publicPermission { request.publicPermission = nil }
    guard let entries = request.participants else { return request }
    let before = Dictionary(base.participants.map { ($0.participantId, $0) }) { first, _ in first }
    var merged: [ShareParticipant] = []
    for var entry in entries {
      if let known = before[entry.participantId], entry.participantId != nil {
        let isEdited = entry.permission != known.permission || entry.type != known.type
        // Removed meanwhile: an entry that was not edited is no invitation.
        guard isEdited || participants.contains(where: { $0.matches(entry) }) else { continue }
        if entry.permission == known.permission { entry.permission = nil }
        if entry.type == known.type, entry.type != .owner { entry.type = nil }
      }
      merged.append(entry)
    }
    for participant in participants
    where participant.type != .owner && before[participant.id] == nil
      && !entries.contains(where: participant.matches)
    {
      merged.append(ShareParticipant(participantId: participant.id))
    }
    request.participants = merged
    return request
  }

  private mutating func replaceParticipants(
    _ entries: [ShareParticipant],
    keepsKnown: Bool,
    _ edit: Edit
  ) throws(ErrorDictionary) {
    var kept: [StoredParticipant] = []
    for entry in entries {
      try Self.check(entry)
      if let known = participants.first(where: { $0.matches(entry) }) {
        guard known.type != .owner, !kept.contains(where: { $0.id == known.id }) else { continue }
        guard entry.acceptanceStatus != .removed, entry.acceptanceStatus != .unsubscribed else {
          continue
        }
        if keepsKnown || known.status == .invited {
          var updated = known
          updated.permission = entry.permission ?? known.permission
          if let type = entry.type, type == .user || type == .administrator,
            known.type != .publicUser
          {
            updated.type = type
          }
          kept.append(updated)
        } else if entry.acceptanceStatus == .invited {
          // The share is no longer public: users named as invited are invited again.
          kept.append(try invitation(entry, edit, known: known, beside: kept))
        }
      } else if entry.type != .owner {
        let invited = try invitation(entry, edit, known: nil, beside: kept)
        // Whether a participant is the invited user, with another address.
        let isSame = { (known: StoredParticipant) in
          known.user != nil && known.user == invited.user
        }
        if !kept.contains(where: isSame), !participants.contains(where: isSame) {
          kept.append(invited)
        }
      }
    }
    let survivors = Set(kept.filter { $0.status == .accepted }.compactMap(\.user))
    for user in participants.filter({ $0.type != .owner }).compactMap(\.user)
    where !survivors.contains(user) {
      end(user, at: Self.thisCommit)
    }
    participants = participants.filter { $0.type == .owner } + kept
  }

  private static func check(_ entry: ShareParticipant) throws(ErrorDictionary) {
    guard entry.permission != .unknown else {
      throw ErrorDictionary(.badRequest, "invalid value for a participant's 'permission'")
    }
    let identity = entry.userIdentity
    let isNamed =
      entry.participantId != nil || identity?.userRecordName != nil
      || identity?.lookupInfo?.emailAddress?.isEmpty == false
      || identity?.lookupInfo?.phoneNumber?.isEmpty == false
      || identity?.lookupInfo?.userRecordName?.isEmpty == false
    guard isNamed || entry.type == .owner else {
      throw ErrorDictionary(.badRequest, "a participant has neither an identity nor an ID")
    }
  }

  /// Throws for long texts of a new participant: each request to the zone reads them.
  private static func checkTexts(
    of entry: ShareParticipant,
    _ limit: Int
  ) throws(ErrorDictionary) {
    let identity = entry.userIdentity
    let (info, names) = (identity?.lookupInfo, identity?.nameComponents)
    let texts = [
      entry.participantId, identity?.userRecordName, info?.emailAddress, info?.phoneNumber,
      info?.userRecordName, names?.givenName, names?.familyName, names?.middleName,
      names?.namePrefix, names?.nameSuffix, names?.nickname,
    ]
    guard texts.allSatisfy({ ($0?.utf8.count ?? 0) <= limit }) else {
      throw ErrorDictionary(
        .badRequest,
        "a participant's ID, contacts and names have at most \(limit) bytes each",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
  }

  /// A pending invitation, regardless of the status that the client sends: only the invited user
  /// can accept it.
  private func invitation(
    _ entry: ShareParticipant,
    _ edit: Edit,
    known: StoredParticipant?,
    beside others: [StoredParticipant]
  ) throws(ErrorDictionary) -> StoredParticipant {
    try Self.checkTexts(of: entry, edit.textLimit)
    let identity = entry.userIdentity
    var info = identity?.lookupInfo ?? known?.lookupInfo ?? LookupInfo()
    if let user = identity?.userRecordName ?? known?.user { info.userRecordName = user }
    let person = edit.person(info)
    let asked = entry.participantId ?? ""
    let isFree = !asked.isEmpty && !(participants + others).contains { $0.id == asked }
    let shows = person?.isDiscoverable == true
    return StoredParticipant(
      id: isFree ? asked : known?.id ?? edit.newID(),
      type: entry.type == .administrator ? .administrator : .user,
      status: .invited,
      permission: entry.permission ?? .readOnly,
      user: person?.user,
      lookupInfo: info,
      names: (shows ? person?.names : nil) ?? identity?.nameComponents,
      // A client that names the user by the record name knows it.
      isHidden: shows || person == nil || info.userRecordName != nil ? nil : true
    )
  }

  private mutating func remove(_ edit: Edit, _ isGone: (StoredParticipant) -> Bool) {
    for participant in participants where participant.type != .owner && isGone(participant) {
      if let user = participant.user { end(user, at: Self.thisCommit) }
    }
    participants.removeAll { $0.type != .owner && isGone($0) }
  }
}
