import CloudKitWebServices
import Foundation

/// The state of an account besides name and password.
struct AccountState: Codable, Hashable, Sendable {
  var isAdministrator = false
  /// Whether signing in is refused.
  var isDisabled = false
  /// Milliseconds since 1970; nil if the deletion was not requested.
  var deletedAt: Int64?
  /// For a deleted account: whether it was disabled before, and stays so if the deletion is
  /// reverted.
  var wasDisabled: Bool?
  /// Whether the removal of a deleted account's data has begun, so that the deletion cannot be reverted.
  var isBeingPurged: Bool?
  /// Whether the user entered the account's e-mail address and has not confirmed it.
  ///
  /// Other users cannot find the account by it. Nil: an administrator or an issuer set it.
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

  /// The state after changes by the account's user, or by an administrator.
  func changed(by changes: AccountChanges, isOwn: Bool) -> AccountState {
    var state = self
    if let flag = changes.isAdministrator { state.isAdministrator = flag }
    if let flag = changes.isDisabled {
      // A deleted account is enabled by restoring it: otherwise it would be purged with new data.
      if deletedAt == nil {
        state.isDisabled = flag
      } else {
        state.wasDisabled = flag ? true : nil
      }
    }
    // An administrator who sets an address, even the same one, verifies it.
    if changes.emailAddress != nil { state.hasUnverifiedAddress = isOwn ? true : nil }
    return state
  }
}

extension StorageSnapshot {
  /// The one account of an e-mail address.
  ///
  /// A user who signs up with another user's address receives nothing that is meant for its owner:
  /// an unverified address identifies no account, nor does one that several accounts have.
  func account(owning emailAddress: String) throws -> StoredAccount? {
    let owners = try accounts(emailAddress: emailAddress).filter {
      try state(of: $0.id).0.hasUnverifiedAddress != true
    }
    return owners.count == 1 ? owners.first : nil
  }

  /// The state of an account and the revision at which it was read.
  func state(of account: String) throws -> (AccountState, revision: Int64?) {
    guard let entry = try entry(AccountState.key(account)) else { return (AccountState(), nil) }
    return (try WireCoding.decode(AccountState.self, from: entry.body), entry.revision)
  }
}
