/// An account as an administrator sees it.
package struct AccountDescription: Codable, Hashable, Sendable {
  package var id: String
  package var userName: String
  package var givenName: String?
  package var familyName: String?
  package var emailAddress: String?
  package var phoneNumber: String?
  package var isAdministrator: Bool
  package var isDisabled: Bool
  /// Whether other users cannot find the account by its address until an administrator sets it;
  /// nil: they can.
  package var hasUnverifiedAddress: Bool?
  /// Nil: none.
  package var hasSecondFactor: Bool?
  /// Milliseconds since 1970.
  package var deletedAt: Int64?
  package var sessions: Int
}

/// The changes of an account; nil keeps a value.
package struct AccountChanges: Codable, Hashable, Sendable {
  package var password: String?
  package var givenName: String?
  package var familyName: String?
  package var emailAddress: String?
  /// An empty text removes it.
  package var phoneNumber: String?
  package var isAdministrator: Bool?
  package var isDisabled: Bool?

  package init(
    password: String? = nil,
    givenName: String? = nil,
    familyName: String? = nil,
    emailAddress: String? = nil,
    phoneNumber: String? = nil,
    isAdministrator: Bool? = nil,
    isDisabled: Bool? = nil
  ) {
    self.password = password
    self.givenName = givenName
    self.familyName = familyName
    self.emailAddress = emailAddress
    self.phoneNumber = phoneNumber
    self.isAdministrator = isAdministrator
    self.isDisabled = isDisabled
  }
}
