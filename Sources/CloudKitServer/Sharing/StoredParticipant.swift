import CloudKitWebServices

/// A participant as a share keeps them.
struct StoredParticipant: Codable, Hashable, Sendable {
  var id: String
  var type: ParticipantType
  var status: ParticipantStatus
  var permission: ParticipantPermission
  /// Nil while nobody is known by what they were invited with.
  var user: String?
  var lookupInfo: LookupInfo?
  var names: NameComponents?
  /// They had asked to take part.
  var wasRequester: Bool?

  /// Short: a share is read with every access to it.
  private enum CodingKeys: String, CodingKey {
    case id = "i"
    case type = "t"
    case status = "s"
    case permission = "p"
    case user = "u"
    case lookupInfo = "l"
    case names = "n"
    case wasRequester = "q"
  }

  /// Whether this is the person.
  func matches(_ person: SharePerson) -> Bool {
    if let user { return user == person.user }
    guard let lookupInfo else { return false }
    if let name = lookupInfo.userRecordName { return name == person.user }
    if let address = lookupInfo.emailAddress { return person.isAddressed(by: address) }
    guard let number = lookupInfo.phoneNumber.flatMap({ PhoneNumber($0) }) else { return false }
    return number.text == person.phoneNumber
  }

  /// Whether an entry of a request means this participant.
  func matches(_ entry: ShareParticipant) -> Bool {
    if let id = entry.participantId, id == self.id { return true }
    guard let identity = entry.userIdentity else { return false }
    if let user, user == identity.userRecordName ?? identity.lookupInfo?.userRecordName {
      return true
    }
    guard let mine = lookupInfo, let asked = identity.lookupInfo else { return false }
    if let address = asked.emailAddress {
      return mine.emailAddress.map { EmailAddress.areSame($0, address) } ?? false
    }
    guard let number = asked.phoneNumber.flatMap({ PhoneNumber($0) }) else { return false }
    return number == mine.phoneNumber.flatMap { PhoneNumber($0) }
  }

  /// As a reply shows them; how they are reached is for those who invite, and for themselves.
  func dictionary(showsContact: Bool) -> ShareParticipant {
    ShareParticipant(
      participantId: id,
      type: type,
      acceptanceStatus: status,
      permission: permission,
      userIdentity: UserIdentity(
        userRecordName: user,
        nameComponents: names,
        lookupInfo: showsContact ? lookupInfo : nil
      ),
      isApprovedRequester: wasRequester
    )
  }
}

/// A signed-in person as shares know them.
struct SharePerson: Hashable, Sendable {
  var user: String
  /// Nil where none is verified.
  var emailAddress: String?
  /// As `PhoneNumber` writes it.
  var phoneNumber: String?
  var names: NameComponents?

  func isAddressed(by address: String) -> Bool {
    guard let emailAddress, !emailAddress.isEmpty else { return false }
    return EmailAddress.areSame(emailAddress, address)
  }
}
