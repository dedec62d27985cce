import CloudKitWebServices
import Foundation

/// What is known of an account beside name and password.
struct AccountState: Codable, Hashable, Sendable {
  var isAdministrator = false
  /// May not sign in.
  var isDisabled = false
  /// Milliseconds since 1970; nil where nobody asked for deletion.
  var deletedAt: Int64?
  /// Of a deleted account: whether it was shut before, and stays so when the deletion is taken back.
  var wasDisabled: Bool?
  /// The person typed the account's e-mail address, and nothing has shown that it is theirs.
  ///
  /// Others do not find the account by it. Nil: an administrator or an issuer gave it.
  var hasUnverifiedAddress: Bool?

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
  /// The one account that an e-mail address leads to.
  ///
  /// A person who signs up with another's address gets nothing that is meant for its owner: an address
  /// that is not verified leads nowhere, nor does one that several accounts have.
  func account(owning emailAddress: String) throws -> StoredAccount? {
    let owners = try accounts(emailAddress: emailAddress).filter {
      try state(of: $0.id).0.hasUnverifiedAddress != true
    }
    return owners.count == 1 ? owners.first : nil
  }

  /// The state of an account and the revision it was read at.
  func state(of account: String) throws -> (AccountState, revision: Int64?) {
    guard let entry = try entry(AccountState.key(account)) else { return (AccountState(), nil) }
    return (try WireCoding.decode(AccountState.self, from: entry.body), entry.revision)
  }
}
