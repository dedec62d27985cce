import CloudKitWebServices

/// Who asks to take part in a share, and who may not ask any more.
struct AccessRequests: Codable, Hashable, Sendable {
  /// Somebody who asked, as they were known then.
  struct Requester: Codable, Hashable, Sendable {
    var user: String
    var lookupInfo: LookupInfo
    var names: NameComponents?

    private enum CodingKeys: String, CodingKey {
      case user = "u"
      case lookupInfo = "l"
      case names = "n"
    }

    init(_ person: SharePerson) {
      user = person.user
      names = person.names
      // One way to reach them, as CloudKit shows one.
      if let address = person.emailAddress, !address.isEmpty {
        lookupInfo = LookupInfo(emailAddress: address)
      } else if let number = person.phoneNumber {
        lookupInfo = LookupInfo(phoneNumber: number)
      } else {
        lookupInfo = LookupInfo(userRecordName: person.user)
      }
    }

    init(_ participant: StoredParticipant, user: String) {
      self.user = user
      lookupInfo = participant.lookupInfo ?? LookupInfo(userRecordName: user)
      names = participant.names
    }

    func isMeant(by entry: ShareParticipant) -> Bool {
      guard let identity = entry.userIdentity else { return false }
      return user == identity.userRecordName ?? identity.lookupInfo?.userRecordName
    }

    /// As a reply shows them to those who answer.
    var dictionary: ShareParticipant {
      ShareParticipant(
        userIdentity: UserIdentity(
          userRecordName: user,
          nameComponents: names,
          lookupInfo: lookupInfo
        )
      )
    }
  }

  /// Whether who has the link may ask.
  var isOpen = false
  /// In the order in which they asked.
  var requesters: [Requester] = []
  var blocked: [Requester] = []

  private enum CodingKeys: String, CodingKey {
    case isOpen = "o"
    case requesters = "r"
    case blocked = "b"
  }

  func mentions(_ user: String) -> Bool {
    requesters.contains { $0.user == user } || blocked.contains { $0.user == user }
  }

  mutating func forget(_ user: String) {
    requesters.removeAll { $0.user == user }
    blocked.removeAll { $0.user == user }
  }
}

extension ShareState {
  /// Somebody who has the link asks to take part.
  ///
  /// False where nothing changes, whatever the reason: they are not to know it.
  mutating func request(_ person: SharePerson, limit: Int) -> Bool {
    guard var asked = requests, asked.isOpen, !publicPermission.canRead,
      participant(person) == nil, !asked.mentions(person.user), asked.requesters.count < limit
    else { return false }
    asked.requesters.append(AccessRequests.Requester(person))
    requests = asked
    return true
  }

  /// What those who may invite say to those who asked; after the participants are what they will be.
  mutating func answer(_ request: ShareDictionary, blockedLimit: Int) throws(ErrorDictionary) {
    var asked = requests ?? AccessRequests()
    if let isClosed = request.denyAccessRequests { asked.isOpen = !isClosed }
    if let entries = request.blocked {
      let guests = participants.compactMap { guest in
        guest.type == .owner
          ? nil : guest.user.map { AccessRequests.Requester(guest, user: $0) }
      }
      var blocked: [AccessRequests.Requester] = []
      for person in asked.blocked + asked.requesters + guests
      where entries.contains(where: person.isMeant) {
        if !blocked.contains(where: { $0.user == person.user }) { blocked.append(person) }
      }
      guard blocked.count <= blockedLimit else {
        throw ErrorDictionary(
          .badRequest,
          "a share has at most \(blockedLimit) people who may not ask",
          extension: ErrorExtension(code: .limitExceeded)
        )
      }
      let added = blocked.filter { !asked.blocked.contains($0) }.map(\.user)
      asked.blocked = blocked
      asked.requesters.removeAll { added.contains($0.user) }
      for user in added where participant(named: user)?.type != .owner {
        leave(user, at: Self.thisCommit)
      }
    }
    for index in participants.indices {
      guard let user = participants[index].user,
        asked.requesters.contains(where: { $0.user == user })
      else { continue }
      participants[index].wasRequester = true
      asked.requesters.removeAll { $0.user == user }
    }
    if let entries = request.requesters {
      asked.requesters.removeAll { asker in !entries.contains(where: asker.isMeant) }
    }
    requests = asked == AccessRequests() ? nil : asked
  }
}
