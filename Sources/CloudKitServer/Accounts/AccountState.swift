import CloudKitWebServices
import Foundation

/// What is known of an account beside name and password.
struct AccountState: Codable, Hashable, Sendable {
  var isAdministrator = false
  /// May not sign in.
  var isDisabled = false
  /// Milliseconds since 1970; nil where nobody asked for deletion.
  var deletedAt: Int64?

  static func key(_ account: String) -> DirectoryEntry.Key {
    DirectoryEntry.Key(.accountState, account)
  }

  func entry(_ account: String, revision: Int64) throws -> DirectoryEntry {
    DirectoryEntry(
      Self.key(account),
      revision: revision,
      body: try WireCoding.encode(self)
    )
  }
}

extension StorageSnapshot {
  /// The state of an account and the revision it was read at.
  func state(of account: String) throws -> (AccountState, revision: Int64?) {
    guard let entry = try entry(AccountState.key(account)) else { return (AccountState(), nil) }
    return (try WireCoding.decode(AccountState.self, from: entry.body), entry.revision)
  }
}
