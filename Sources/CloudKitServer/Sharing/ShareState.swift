import CloudKitWebServices

/// The state of a share besides its fields: a pure value, so that its rules can be tested.
struct ShareState: Codable, Hashable, Sendable {
  /// The interval of a participation, which determines the visible records.
  struct Participation: Codable, Hashable, Sendable {
    var user: String
    var joined: ChangeNumber
    var left: ChangeNumber?

    private enum CodingKeys: String, CodingKey {
      case user = "u"
      case joined = "j"
      case left = "l"
    }
  }

  /// Nil if the whole zone is shared.
  var root: String?
  var shortGUID: String
  var publicPermission = ParticipantPermission.none
  /// The owner first.
  var participants: [StoredParticipant]
  var participations: [Participation] = []
  /// Nil if access requests are off and there are none.
  var requests: AccessRequests?

  private enum CodingKeys: String, CodingKey {
    case root = "r"
    case shortGUID = "g"
    case publicPermission = "a"
    case participants = "p"
    case participations = "s"
    case requests = "q"
  }

  init(root: String?, shortGUID: String, owner: SharePerson, participantID: String) {
    self.root = root
    self.shortGUID = shortGUID
    participants = [
      StoredParticipant(
        id: participantID,
        type: .owner,
        status: .accepted,
        permission: .readWrite,
        user: owner.user,
        lookupInfo: LookupInfo(emailAddress: owner.emailAddress),
        names: owner.names
      )
    ]
  }

  // MARK: Participants

  var owner: StoredParticipant? { participants.first { $0.type == .owner } }

  func participant(_ person: SharePerson) -> StoredParticipant? {
    index(of: person).map { participants[$0] }
  }

  private func index(of person: SharePerson) -> Int? {
    participants.firstIndex { $0.user == person.user }
      ?? participants.firstIndex { $0.matches(person) }
  }

  func participant(named user: String) -> StoredParticipant? {
    participants.first { $0.user == user }
  }

  /// A participant's permission; one who joined by the link has the link's current permission.
  func permission(of participant: StoredParticipant) -> ParticipantPermission {
    guard participant.status == .accepted else { return .none }
    return participant.type == .publicUser ? publicPermission : participant.permission
  }

  func permission(of user: String) -> ParticipantPermission {
    participant(named: user).map(permission) ?? .none
  }

  func mayInvite(_ user: String) -> Bool {
    guard let participant = participant(named: user), participant.status == .accepted else {
      return false
    }
    return participant.type == .owner || participant.type == .administrator
  }

  // MARK: Joining and leaving

  /// Joins the share by its link.
  ///
  /// Returns false if nothing changes, because the user is already a participant.
  mutating func accept(
    _ person: SharePerson,
    at change: ChangeNumber,
    participantID: String,
    limit: Int,
    participationLimits: ParticipationLimits = ParticipationLimits()
  ) throws(ErrorDictionary) -> Bool {
    if let index = index(of: person) {
      let known = participants[index]
      guard known.status != .accepted else { return false }
      try check(participationLimits, for: person.user)
      participants[index].status = .accepted
      participants[index].user = person.user
      participants[index].isHidden = nil
      participants[index].names = person.names ?? known.names
    } else {
      guard publicPermission.canRead else { throw Self.notFound }
      guard participants.count <= limit else { throw Self.full(limit) }
      try check(participationLimits, for: person.user)
      participants.append(
        StoredParticipant(
          id: participantID,
          type: .publicUser,
          status: .accepted,
          permission: publicPermission,
          user: person.user,
          lookupInfo: LookupInfo(emailAddress: person.emailAddress),
          names: person.names
        )
      )
    }
    requests?.requesters.removeAll { $0.user == person.user }
    participations.append(Participation(user: person.user, joined: change))
    return true
  }

  /// The limits for the participations that a share keeps, ended ones included: every request to
  /// its zone reads them.
  struct ParticipationLimits: Sendable {
    var perUser = Int.max
    var inAll = Int.max
  }

  private func check(
    _ limits: ParticipationLimits,
    for user: String
  ) throws(ErrorDictionary) {
    let own = participations.lazy.filter { $0.user == user }.count
    guard own >= limits.perUser || participations.count >= limits.inAll else { return }
    throw ErrorDictionary(
      .badRequest,
      own >= limits.perUser
        ? "you have joined and left this share \(limits.perUser) times; its owner can share again"
        : "the share was joined \(limits.inAll) times; its owner can share again",
      extension: ErrorExtension(code: .limitExceeded)
    )
  }

  /// Ends the participation of a user who leaves or is removed.
  mutating func end(_ user: String, at change: ChangeNumber) {
    for index in participations.indices
    where participations[index].user == user && participations[index].left == nil {
      participations[index].left = change
    }
  }

  mutating func leave(_ user: String, at change: ChangeNumber) {
    participants.removeAll { $0.user == user && $0.type != .owner }
    end(user, at: change)
  }

  /// Whether the state mentions the user.
  func mentions(_ user: String) -> Bool {
    participant(named: user) != nil || requests?.mentions(user) == true
  }

  /// Removes a user whose account was purged.
  mutating func forget(_ user: String, at change: ChangeNumber) {
    leave(user, at: change)
    requests?.forget(user)
  }

  /// Ends all participations.
  mutating func endAll(at change: ChangeNumber) {
    participants.removeAll { $0.type != .owner }
    requests = nil
    for index in participations.indices where participations[index].left == nil {
      participations[index].left = change
    }
  }

  /// Forgets participations that ended before a zone's horizon, which no feed reports any more.
  mutating func forgetParticipations(before horizon: ChangeNumber) {
    participations.removeAll { ($0.left ?? horizon) < horizon }
  }

  // MARK: Change numbers

  /// A placeholder for the commit's own change number until it is known.
  static let thisCommit = ChangeNumber(.max)

  mutating func settle(at change: ChangeNumber) {
    for index in participations.indices {
      if participations[index].joined == Self.thisCommit { participations[index].joined = change }
      if participations[index].left == Self.thisCommit { participations[index].left = change }
    }
  }

  // MARK: Errors

  /// The error for a missing share, and for one that the caller may not see.
  static let notFound = ErrorDictionary(
    .notFound,
    "the share does not exist, or you are not invited to it"
  )

  static func full(_ limit: Int) -> ErrorDictionary {
    ErrorDictionary(
      .badRequest,
      "a share has at most \(limit) participants",
      extension: ErrorExtension(code: .limitExceeded)
    )
  }
}
