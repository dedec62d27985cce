import CloudKitWebServices
import Effects
import Foundation

/// Maps users that another service has authenticated to accounts.
extension CloudKitService {
  /// The account of a user of another service: their own, one with their address if the
  /// configuration allows it, or a new one if the policy does.
  func account(
    of identity: ExternalIdentity,
    _ provider: any IdentityProvider,
    _ attempt: IdentityAttempt
  ) async throws -> StoredAccount {
    let known = try storage.read { snapshot in
      try snapshot.entry(identity.key).flatMap { try snapshot.account(id: $0.owner) }
    }
    var account = known
    // The page shows or deletes an existing account only: none is created or linked for that.
    if account == nil, attempt.purpose.isOfOwnAccount {
      throw AdministrationError(description: "You have no account here.")
    }
    if account == nil, provider.linksByEmail {
      account = try await linkByEmail(identity)
    }
    if let account {
      guard try !storage.read({ try $0.state(of: account.id).0.isDisabled }) else {
        throw AdministrationError(description: "This account may not sign in.")
      }
      return account
    }
    var invitation: String?
    if case .register(let code) = attempt.purpose { invitation = code }
    return try await register(identity, provider, invitation: invitation)
  }

  /// Links the one account with the verified address to its owner.
  ///
  /// An account with an unverified address is not linked: its shares and data belong to the user
  /// who entered the address. The password and the sessions of a linked account end in any case.
  private func linkByEmail(_ identity: ExternalIdentity) async throws -> StoredAccount? {
    guard let address = identity.emailAddress else { return nil }
    let linked = try await write { [storage] in
      try storage.read { try self.linking(identity, to: address, $0) }
    }
    guard let linked else { return nil }
    sessions.credentialsEnded(of: linked.id)
    auditLog.record(
      "account.link",
      by: linked.userName,
      about: linked.userName,
      detail: identity.issuer
    )
    return linked
  }

  /// The batch that links an identity, and the account with the address; nils where there is none.
  ///
  /// The account's state gets a new revision: what another server decides at the same time about the
  /// account's address, or by a link to a new password, is decided again.
  func linking(
    _ identity: ExternalIdentity,
    to address: String,
    _ snapshot: any StorageSnapshot
  ) throws -> (WriteBatch?, StoredAccount?) {
    guard var account = try snapshot.account(owning: address),
      try snapshot.entries(DirectoryRange(.identity, owner: account.id)).isEmpty
    else { return (nil, nil) }
    account.passwordHash = effects.randomness.bytes(account.passwordHash.count)
    let (state, revision) = try snapshot.state(of: account.id)
    var batch = WriteBatch()
    batch.accounts = [account]
    batch.expectedEntries[identity.key] = .some(nil)
    batch.expectedEntries[AccountState.key(account.id)] = .some(revision)
    batch.savedEntries = [
      try identity.entry(for: account.id),
      try state.entry(account.id, revision: (revision ?? 0) + 1),
    ]
    try sessions.endAll(of: account.id, snapshot, in: &batch)
    return (batch, account)
  }

  private func register(
    _ identity: ExternalIdentity,
    _ provider: any IdentityProvider,
    invitation code: String?
  ) async throws -> StoredAccount {
    let found = try code.flatMap { try accounts.invitation($0) }
    guard found != nil || (provider.registration ?? configuration.registration) == .open else {
      throw AdministrationError(
        description: configuration.registration == .closed
          ? "You have no account here; only this server's administrator creates accounts."
          : "You have no account here, and new ones require an invitation."
      )
    }
    let names = identity.userNames(limit: limits.nameLength)
    let userName =
      try names.first { try !accounts.has(named: $0) }
      ?? "person-\(effects.randomness.bytes(6).hexadecimal)"
    let address = identity.emailAddress.flatMap {
      EmailAddress.objection(to: $0) == nil ? $0 : nil
    }
    let id = try await accounts.create(
      userName: userName,
      // A random password, so that the account is only accessible through the other service.
      password: effects.randomness.bytes(32).base64URL,
      givenName: identity.givenName.flatMap(shownName),
      familyName: identity.familyName.flatMap(shownName),
      emailAddress: address,
      isAdministrator: found?.invitation.isAdministrator ?? false,
      hasUnverifiedAddress: address == nil,
      identity: identity,
      using: found?.entry,
      from: nil
    )
    auditLog.record("account.register", by: userName, about: userName, detail: identity.issuer)
    guard let account = try storage.read({ try $0.account(id: id) }) else {
      throw AdministrationError(description: "The account was removed again.")
    }
    return account
  }

  /// A name that pages can show; nil for one that is too long or has hidden characters.
  private func shownName(_ name: String) -> String? {
    name.utf8.count <= 4 * limits.nameLength && name.count <= limits.nameLength
      && PersonName.objection(to: name) == nil ? name : nil
  }
}

extension ExternalIdentity {
  struct Body: Codable, Sendable {
    var issuer: String
    var subject: String
  }

  /// The entry that links an account to this user.
  func entry(for account: String) throws -> DirectoryEntry {
    DirectoryEntry(
      key,
      owner: account,
      body: try WireCoding.encode(Body(issuer: issuer, subject: subject))
    )
  }

  /// The names that a new account could have, in order of preference.
  fileprivate func userNames(limit: Int) -> [String] {
    // Only a verified address may be used as a name that looks like one: other users are found by
    // it. Some issuers give an address that they did not verify as the name.
    let names = [userName, emailAddress, givenName].compactMap(\.self)
      .map { $0 == emailAddress ? $0 : String($0.prefix(before: "@")) }
      .filter { !$0.isEmpty && $0.utf8.count <= 4 * limit && $0.count <= limit - 4 }
      .filter { PersonName.objection(to: $0) == nil }
    guard let first = names.first else { return [] }
    return names + (2...99).map { "\(first.prefix(before: "@"))-\($0)" }
  }
}
