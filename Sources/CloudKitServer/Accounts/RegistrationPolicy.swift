/// Who may make an account.
package enum RegistrationPolicy: String, Codable, Hashable, Sendable, CaseIterable {
  /// Administrators alone.
  case closed
  /// Who has an invitation.
  case invitation
  /// Anybody who reaches the server.
  case open
}

/// An invitation to make an account, good once.
struct Invitation: Codable, Hashable, Sendable {
  var isAdministrator: Bool
  /// Who invited; empty for the server itself at its first start.
  var by: String

  static func key(_ code: String) -> DirectoryEntry.Key {
    // Like a token: whoever reads the storage cannot use it.
    DirectoryEntry.Key(.invitation, CloudKitService.digest(code))
  }
}
