import CloudKitWebServices
import Effects
import Foundation

/// The properties of a mailed link to a new password; a link from an administrator has none.
struct MailedReset: Codable, Hashable, Sendable {
  /// The address to which the mail was sent.
  var address: String
}

/// Links to a new password.
extension AccountService {
  static let usedLink = AdministrationError(
    description: "This link has expired or was used."
  )

  /// A link with which the account's owner can choose a new password, once.
  package func passwordResetURL(for userName: String) async throws -> String {
    try await passwordResetURL(for: userName, mailedTo: nil)
  }

  /// A link to a new password of an account, to be mailed to `address`.
  func passwordResetURL(for userName: String, mailedTo address: String?) async throws -> String {
    let account = try storage.account(named: userName)
    let code = effects.randomness.bytes(24).base64URL
    let entry = DirectoryEntry(
      DirectoryEntry.Key(.passwordReset, TokenDigest.of(code)),
      owner: account.id,
      expires: now + Int64(limits.passwordResetLifetime * 1000),
      body: try address.map { try WireCoding.encode(MailedReset(address: $0)) } ?? Data()
    )
    try await writer.write {
      var batch = WriteBatch()
      batch.savedEntries = [entry]
      return (batch, ())
    }
    return "\(self.address.url)\(Route.Section.resetPassword.path)?code=\(code)"
  }

  /// The entry and the account of a reset link; nil for one that is unknown, used or expired.
  func resetLink(_ code: String) throws -> (entry: DirectoryEntry, account: StoredAccount)? {
    let key = DirectoryEntry.Key(.passwordReset, TokenDigest.of(code))
    guard let entry = try storage.read({ try $0.entry(key) }), (entry.expires ?? 0) > now,
      let account = try storage.read({ try $0.account(id: entry.owner) })
    else { return nil }
    return (entry, account)
  }

  /// Sets the password that the holder of a reset link chose.
  ///
  /// The transaction that sets the password uses the link up: after a refusal, such as a full
  /// hashing queue, the link is still valid.
  func resetPassword(code: String, password: String, from sender: SenderAddress?) async throws {
    guard let (entry, account) = try resetLink(code) else { throw Self.usedLink }
    try await change(
      account.userName,
      AccountChanges(password: password),
      from: sender,
      using: entry
    )
    auditLog.record(
      "account.reset-password",
      by: account.userName,
      about: account.userName,
      from: sender
    )
  }

  /// Whether a link may still set the account's password: a mailed one only while its address is
  /// the confirmed one and the account has no identity at an issuer, and never for an administrator
  /// without a second factor.
  func mayUse(
    _ link: DirectoryEntry,
    of account: StoredAccount,
    _ state: AccountState,
    _ snapshot: any StorageSnapshot
  ) throws -> Bool {
    guard !link.body.isEmpty else { return true }
    let mailed = try WireCoding.decode(MailedReset.self, from: link.body)
    guard let address = try snapshot.verifiedAddress(of: account),
      EmailAddress.areSame(address, mailed.address)
    else { return false }
    return try mayReset(byMail: account.id, state, snapshot) == .link
  }

  /// The mail for a user who requests a new password.
  enum MailedAnswer: Hashable, Sendable {
    case link
    /// A password would allow signing in without the other service and its factors.
    case signInAtIssuer
    /// Access to a mailbox alone must not allow administering the server.
    case askOperator
  }

  func mayReset(
    byMail account: String,
    _ state: AccountState,
    _ snapshot: any StorageSnapshot
  ) throws -> MailedAnswer {
    let identities = try snapshot.entries(DirectoryRange(.identity, owner: account))
    guard identities.isEmpty else { return .signInAtIssuer }
    let hasFactor = try snapshot.secondFactor(of: account, now: now)?.0.isConfirmed == true
    return state.isAdministrator && !hasFactor ? .askOperator : .link
  }
}
