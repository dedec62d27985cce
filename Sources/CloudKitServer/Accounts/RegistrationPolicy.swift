/// Who may create an account.
package enum RegistrationPolicy: String, Codable, Hashable, Sendable, CaseIterable {
  /// Only administrators create accounts.
  case closed
  /// Users with an invitation create an account.
  case invitation
  /// Any user creates an account.
  case open
}

/// An invitation to create an account, valid once.
struct Invitation: Codable, Hashable, Sendable {
  var isAdministrator: Bool
  /// The inviting user; empty for the server itself at its first start.
  var by: String

  static func key(_ code: String) -> DirectoryEntry.Key {
    // A digest, as for a token: reading the storage reveals no code.
    DirectoryEntry.Key(.invitation, TokenDigest.of(code))
  }
}
