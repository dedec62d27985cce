import CloudKitWebServices

/// The users who requested access to a share, and those whose requests are blocked.
struct AccessRequests: Codable, Hashable, Sendable {
  /// A user who requested access, with the contact data of that time.
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
      // One contact, as in CloudKit.
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

    /// The requester as in replies to those who decide.
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

  /// Whether anyone with the link may request access.
  var isOpen = false
  /// The requesters in the order of their requests.
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
  /// Adds a request of a user who has the link.
  ///
  /// Returns false if nothing changes; the reason is not revealed to the user.
  mutating func request(_ person: SharePerson, limit: Int) -> Bool {
    guard var asked = requests, asked.isOpen, !publicPermission.canRead,
      participant(person) == nil, !asked.mentions(person.user), asked.requesters.count < limit
    else { return false }
    asked.requesters.append(AccessRequests.Requester(person))
    requests = asked
    return true
  }

  /// Applies the decisions of those who may invite; called after the participants were updated.
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
          "a share has at most \(blockedLimit) blocked requesters",
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
