import CloudKitWebServices

/// A participant as stored in a share.
struct StoredParticipant: Codable, Hashable, Sendable {
  var id: String
  var type: ParticipantType
  var status: ParticipantStatus
  var permission: ParticipantPermission
  /// Nil until a user with the invitation's contact has accepted.
  var user: String?
  var lookupInfo: LookupInfo?
  var names: NameComponents?
  /// Whether they had requested access.
  var wasRequester: Bool?
  /// Whether replies are without the user, who was invited by an address or a number, has not
  /// accepted, and has not consented to be found by it.
  var isHidden: Bool?

  /// Short, because a share is decoded with every access to it.
  private enum CodingKeys: String, CodingKey {
    case id = "i"
    case type = "t"
    case status = "s"
    case permission = "p"
    case user = "u"
    case lookupInfo = "l"
    case names = "n"
    case wasRequester = "q"
    case isHidden = "h"
  }

  /// Whether the participant is this user.
  func matches(_ person: SharePerson) -> Bool {
    if let user { return user == person.user }
    guard let lookupInfo else { return false }
    if let name = lookupInfo.userRecordName { return name == person.user }
    if let address = lookupInfo.emailAddress { return person.isAddressed(by: address) }
    guard let number = lookupInfo.phoneNumber.flatMap({ PhoneNumber($0) }) else { return false }
    return number.text == person.phoneNumber
  }

  /// Whether an entry of a request identifies this participant.
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

  /// The participant in a reply; contacts are included for those who invite, and for the
  /// participant.
  func dictionary(showsContact: Bool) -> ShareParticipant {
    ShareParticipant(
      participantId: id,
      type: type,
      acceptanceStatus: status,
      permission: permission,
      userIdentity: UserIdentity(
        userRecordName: isHidden == true ? nil : user,
        nameComponents: names,
        lookupInfo: showsContact ? lookupInfo : nil
      ),
      isApprovedRequester: wasRequester
    )
  }
}

/// A signed-in user, as in shares.
struct SharePerson: Hashable, Sendable {
  var user: String
  /// Nil if none is verified.
  var emailAddress: String?
  /// The number in the format of `PhoneNumber`.
  var phoneNumber: String?
  var names: NameComponents?
  /// Whether other users find them by an address or a number.
  var isDiscoverable = false

  func isAddressed(by address: String) -> Bool {
    guard let emailAddress, !emailAddress.isEmpty else { return false }
    return EmailAddress.areSame(emailAddress, address)
  }
}
