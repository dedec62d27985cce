import CloudKitWebServices
import Foundation

/// What a link to a new password that went out in a mail has beside its account; a link that an
/// administrator gives out has nothing.
struct MailedReset: Codable, Hashable, Sendable {
  /// Where the mail went.
  var address: String
}

/// Links to a new password.
extension CloudKitService {
  static let spentLink = AdministrationError(
    description: "This link is not good any more."
  )

  /// A link that lets the account's owner choose a new password, once.
  package func passwordResetURL(for userName: String) async throws -> String {
    try await passwordResetURL(for: userName, mailedTo: nil)
  }

  /// The same, for a mail to an address.
  func passwordResetURL(for userName: String, mailedTo address: String?) async throws -> String {
    let account = try account(named: userName)
    let code = effects.randomness.bytes(24).base64URL
    let entry = DirectoryEntry(
      DirectoryEntry.Key(.passwordReset, Self.digest(code)),
      owner: account.id,
      expires: now + Int64(limits.passwordResetLifetime * 1000),
      body: try address.map { try WireCoding.encode(MailedReset(address: $0)) } ?? Data()
    )
    try await write {
      var batch = WriteBatch()
      batch.savedEntries = [entry]
      return (batch, ())
    }
    return "\(baseURL)/reset-password?code=\(code)"
  }

  /// Sets the password that a reset link's holder chose.
  ///
  /// The transaction that sets the password ends the link: after a refusal, as by a full queue of
  /// hashing, the link is still good.
  func resetPassword(code: String, password: String, from sender: SenderAddress?) async throws {
    let key = DirectoryEntry.Key(.passwordReset, Self.digest(code))
    let entry = try storage.read { try $0.entry(key) }
    guard let entry, (entry.expires ?? 0) > now,
      let account = try storage.read({ try $0.account(id: entry.owner) })
    else { throw Self.spentLink }
    try await changeAccount(
      account.userName,
      AccountChanges(password: password),
      from: sender,
      using: entry
    )
    audit(
      "account.reset-password",
      by: account.userName,
      about: account.userName,
      from: sender
    )
  }

  /// Whether a link may still set the account's password: a mailed one only while its address is the
  /// confirmed one, the account has no identity at an issuer, and a mailbox opens no administration.
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

  /// What a person gets who asks for a new password by mail.
  enum MailedAnswer: Hashable, Sendable {
    case link
    /// A password would be a way in beside the other service, without its factors.
    case signInElsewhere
    /// A mailbox alone must not administer the server.
    case askOperator
  }

  func mayReset(
    byMail account: String,
    _ state: AccountState,
    _ snapshot: any StorageSnapshot
  ) throws -> MailedAnswer {
    let identities = try snapshot.entries(DirectoryRange(.identity, owner: account))
    guard identities.isEmpty else { return .signInElsewhere }
    let hasFactor = try snapshot.secondFactor(of: account, now: now)?.0.isConfirmed == true
    return state.isAdministrator && !hasFactor ? .askOperator : .link
  }
}
