import Foundation

/// A user in the replies of `users/caller`, `users/current` and the look-ups: the union of the
/// forms that clients read.
package struct UserIdentity: Codable, Hashable, Sendable {
  package var userRecordName: String?
  package var firstName: String?
  package var lastName: String?
  package var emailAddress: String?
  package var nameComponents: NameComponents?
  package var lookupInfo: LookupInfo?

  package init(
    userRecordName: String? = nil,
    firstName: String? = nil,
    lastName: String? = nil,
    emailAddress: String? = nil,
    nameComponents: NameComponents? = nil,
    lookupInfo: LookupInfo? = nil
  ) {
    self.userRecordName = userRecordName
    self.firstName = firstName
    self.lastName = lastName
    self.emailAddress = emailAddress
    self.nameComponents = nameComponents
    self.lookupInfo = lookupInfo
  }

  /// The members of `users/caller` and `users/current` are always present, since clients require
  /// them.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(userRecordName, forKey: .userRecordName)
    try container.encode(firstName, forKey: .firstName)
    try container.encode(lastName, forKey: .lastName)
    try container.encodeIfPresent(emailAddress, forKey: .emailAddress)
    try container.encode(nameComponents, forKey: .nameComponents)
    try container.encode(lookupInfo, forKey: .lookupInfo)
  }
}

/// The parts of a user's name.
package struct NameComponents: Codable, Hashable, Sendable {
  package var givenName: String?
  package var familyName: String?
  package var middleName: String?
  package var namePrefix: String?
  package var nameSuffix: String?
  package var nickname: String?

  package init(
    givenName: String? = nil,
    familyName: String? = nil,
    middleName: String? = nil,
    namePrefix: String? = nil,
    nameSuffix: String? = nil,
    nickname: String? = nil
  ) {
    self.givenName = givenName
    self.familyName = familyName
    self.middleName = middleName
    self.namePrefix = namePrefix
    self.nameSuffix = nameSuffix
    self.nickname = nickname
  }

  private enum CodingKeys: String, CodingKey {
    case givenName, familyName, middleName, namePrefix, nameSuffix, nickname
    case phoneticRepresentation
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    givenName = try container.decodeIfPresent(String.self, forKey: .givenName)
    familyName = try container.decodeIfPresent(String.self, forKey: .familyName)
    middleName = try container.decodeIfPresent(String.self, forKey: .middleName)
    namePrefix = try container.decodeIfPresent(String.self, forKey: .namePrefix)
    nameSuffix = try container.decodeIfPresent(String.self, forKey: .nameSuffix)
    nickname = try container.decodeIfPresent(String.self, forKey: .nickname)
  }

  /// An absent part is `null`, as in the documented identity.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(givenName, forKey: .givenName)
    try container.encode(familyName, forKey: .familyName)
    try container.encode(middleName, forKey: .middleName)
    try container.encode(namePrefix, forKey: .namePrefix)
    try container.encode(nameSuffix, forKey: .nameSuffix)
    try container.encode(nickname, forKey: .nickname)
    try container.encodeNil(forKey: .phoneticRepresentation)
  }
}

/// The criterion of a user look-up.
package struct LookupInfo: Codable, Hashable, Sendable {
  package var emailAddress: String?
  package var phoneNumber: String?
  package var userRecordName: String?

  package init(
    emailAddress: String? = nil,
    phoneNumber: String? = nil,
    userRecordName: String? = nil
  ) {
    self.emailAddress = emailAddress
    self.phoneNumber = phoneNumber
    self.userRecordName = userRecordName
  }

  /// An absent part is `null`, as in the documented identity.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(emailAddress, forKey: .emailAddress)
    try container.encode(phoneNumber, forKey: .phoneNumber)
    try container.encode(userRecordName, forKey: .userRecordName)
  }
}
