import Foundation

/// A person as `users/caller`, `users/current` and the look-ups show them: the union of the shapes that clients read.
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
}

/// The parts of a person's name.
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
}

/// What a person can be found by.
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
}
