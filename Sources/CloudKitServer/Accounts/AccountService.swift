import CloudKitWebServices
import Effects
import Foundation
import Logging

/// The life cycle of accounts: created, changed, disabled, deleted, purged.
package final class AccountService: Sendable {
  let storage: any Storage
  let writer: StorageWriter
  let sessions: SessionService
  let passwords: PasswordService
  let attempts: SignInLimiter
  let purges: AccountPurges
  let mails: AccountMails
  let auditLog: AuditLog
  let address: ServerAddress
  let registration: RegistrationPolicy
  let issuerName: String?
  let limits: ServiceLimits
  let effects: Effects
  let logger: Logger

  init(
    storage: any Storage,
    writer: StorageWriter,
    sessions: SessionService,
    passwords: PasswordService,
    attempts: SignInLimiter,
    purges: AccountPurges,
    mails: AccountMails,
    auditLog: AuditLog,
    address: ServerAddress,
    registration: RegistrationPolicy,
    issuerName: String?,
    limits: ServiceLimits,
    effects: Effects,
    logger: Logger
  ) {
    self.storage = storage
    self.writer = writer
    self.sessions = sessions
    self.passwords = passwords
    self.attempts = attempts
    self.purges = purges
    self.mails = mails
    self.auditLog = auditLog
    self.address = address
    self.registration = registration
    self.issuerName = issuerName
    self.limits = limits
    self.effects = effects
    self.logger = logger
  }

  /// Milliseconds since 1970.
  var now: Int64 { effects.now.wireMilliseconds }

  /// A page of all accounts, by name; nil for the first.
  package func descriptions(
    after userName: String? = nil,
    limit: Int = 1000
  ) throws -> [AccountDescription] {
    try storage.read { snapshot in
      try snapshot.accounts(after: userName, limit: limit).map { account in
        let state = try snapshot.state(of: account.id).0
        return AccountDescription(
          id: account.id,
          userName: account.userName,
          givenName: account.givenName,
          familyName: account.familyName,
          emailAddress: account.emailAddress,
          phoneNumber: try snapshot.phoneNumber(ofAccount: account.id),
          isAdministrator: state.isAdministrator,
          isDisabled: state.isDisabled,
          hasUnverifiedAddress: state.hasUnverifiedAddress,
          hasSecondFactor: try snapshot.secondFactor(of: account.id, now: now)?.0.isConfirmed
            == true
            ? true : nil,
          deletedAt: state.deletedAt,
          sessions: try snapshot.sessions(account: account.id).filter { $0.expires > now }.count
        )
      }
    }
  }

  package func has(named userName: String) throws -> Bool {
    try storage.read { try $0.account(userName: userName) } != nil
  }

  /// Changes an account; a new password, or disabling it, ends every session.
  package func change(_ userName: String, _ changes: AccountChanges) async throws {
    try await change(userName, changes, from: nil)
  }

  /// Changes an account on behalf of its user, who has a session or a reset link.
  ///
  /// `session` and its device stay signed in, and an address that the user entered is not verified. `proven` is the
  /// account for which the user's password was verified: the call throws if the account was given another password,
  /// or was disabled, since then. `link` is used up by the transaction.
  func change(
    _ userName: String,
    _ changes: AccountChanges,
    from sender: SenderAddress?,
    keeping session: StoredSession? = nil,
    expecting proven: StoredAccount? = nil,
    using link: DirectoryEntry? = nil
  ) async throws {
    let id = try storage.account(named: userName).id
    try checkEmailAddress(changes.emailAddress ?? "")
    let secret = try await changes.password.asyncMap { password in
      try passwords.checkNew(password, userName: userName)
      return try await passwords.newSecret(password, from: sender)
    }
    let (changed, address) = try await writer.write {
      [storage] () -> (WriteBatch?, (StoredAccount, String?)) in
      try storage.read { snapshot in
        guard var account = try snapshot.account(id: id) else {
          throw AdministrationError(description: "There is no account \"\(userName)\".")
        }
        let address = try snapshot.verifiedAddress(of: account)
        account.apply(changes, secret)
        let (before, revision) = try snapshot.state(of: account.id)
        let state = before.changed(by: changes, isOwn: session != nil)
        var batch = WriteBatch()
        if let proven { try batch.expectOpen(proven, snapshot) }
        batch.accounts = [account]
        if let link { try self.use(link, of: account, state, snapshot, in: &batch) }
        batch.expectedEntries[AccountState.key(account.id)] = .some(revision)
        batch.savedEntries = [try state.entry(account.id, revision: (revision ?? 0) + 1)]
        if let number = changes.phoneNumber {
          try batch.setPhoneNumber(number, ofAccount: account.id, snapshot)
        }
        if changes.password != nil || state.isDisabled {
          try self.sessions.endAll(of: account.id, keeping: session, snapshot, in: &batch)
        }
        if changes.emailAddress != nil {
          try Self.removeLinks(of: account.id, snapshot, in: &batch)
        }
        return (batch, (account, address))
      }
    }
    if changes.password != nil { mails.notify(changed, at: address, of: .password, from: sender) }
    if let next = changes.emailAddress, let address, !EmailAddress.areSame(next, address) {
      mails.notify(changed, at: address, of: .address, from: sender)
    }
    if changes.password != nil || changes.isDisabled == true {
      sessions.credentialsEnded(of: changed.id)
    }
    if changes.password != nil { try await attempts.forgetFailures(of: userName) }
  }

  /// Checks the reset link of a new password; the commit throws if the link has been used since.
  private func use(
    _ link: DirectoryEntry,
    of account: StoredAccount,
    _ state: AccountState,
    _ snapshot: any StorageSnapshot,
    in batch: inout WriteBatch
  ) throws {
    guard try snapshot.entry(link.key)?.revision == link.revision else { throw Self.usedLink }
    guard try mayUse(link, of: account, state, snapshot) else { throw Self.usedLink }
    // The new password ends the account's links, including this one; of two concurrent uses one
    // commits.
    batch.expectedEntries[link.key] = .some(link.revision)
    // The commit expects the entries that the check read: another server may change the second
    // factor, or link an identity (which is a new revision of the state), in between.
    let factor = SecondFactor.key(account.id)
    batch.expectedEntries[factor] = .some(try snapshot.entry(factor)?.revision)
  }

  /// Removes the links that were mailed before an account's address changed: links that verify an address would set
  /// that one, and links to a new password were sent to the former one.
  private static func removeLinks(
    of account: String,
    _ snapshot: any StorageSnapshot,
    in batch: inout WriteBatch
  ) throws {
    let resets = try snapshot.entries(
      DirectoryRange(.passwordReset, owner: account, limit: .max)
    )
    let links = try snapshot.verifications(of: account).map(\.key) + resets.map(\.key)
    batch.removedEntries += links.filter { !batch.removedEntries.contains($0) }
  }

  // MARK: Deletion

  /// Disables an account immediately; its data is removed after `purgeDelay`, or immediately.
  package func delete(_ userName: String, purgesNow: Bool = false) async throws {
    try await delete(userName, purgesNow: purgesNow, from: nil)
  }

  func delete(
    _ userName: String,
    purgesNow: Bool = false,
    from sender: SenderAddress?,
    expecting proven: StoredAccount? = nil
  ) async throws {
    let account = try storage.account(named: userName)
    let time = now
    try await writer.write { [storage] in
      try storage.read { snapshot in
        let (before, revision) = try snapshot.state(of: account.id)
        var state = before
        if before.deletedAt == nil, before.isDisabled { state.wasDisabled = true }
        state.deletedAt = before.deletedAt ?? time
        state.isDisabled = true
        var batch = WriteBatch()
        if let proven { try batch.expectOpen(proven, snapshot) }
        batch.expectedEntries[AccountState.key(account.id)] = .some(revision)
        batch.savedEntries = [try state.entry(account.id, revision: (revision ?? 0) + 1)]
        try self.sessions.endAll(of: account.id, snapshot, in: &batch)
        return (batch, ())
      }
    }
    sessions.credentialsEnded(of: account.id)
    mails.notify(account, of: .deletion, from: sender)
    if purgesNow { try await purges.purge(account.id) }
  }

  /// Reverts a deletion before its purge; an account that was disabled before stays disabled.
  package func restore(_ userName: String) async throws {
    let account = try storage.account(named: userName)
    try await writer.write { [storage] in
      let (before, revision) = try storage.read { try $0.state(of: account.id) }
      guard before.deletedAt != nil else {
        throw AdministrationError(
          description:
            "The account \"\(userName)\" is not deleted; `users update` enables a disabled one."
        )
      }
      guard before.isBeingPurged != true else {
        throw AdministrationError(
          description:
            "The data of the account \"\(userName)\" are being removed: it cannot be restored any more."
        )
      }
      var state = before
      state.deletedAt = nil
      state.isDisabled = before.wasDisabled ?? false
      state.wasDisabled = nil
      var batch = WriteBatch()
      batch.expectedEntries[AccountState.key(account.id)] = .some(revision)
      batch.savedEntries = [try state.entry(account.id, revision: (revision ?? 0) + 1)]
      return (batch, ())
    }
  }
}

extension StoredAccount {
  /// Sets the names and the address that changes contain, and a new password.
  fileprivate mutating func apply(_ changes: AccountChanges, _ secret: PasswordSecret?) {
    if let secret { set(secret) }
    if let name = changes.givenName { givenName = name }
    if let name = changes.familyName { familyName = name }
    if let address = changes.emailAddress { emailAddress = address }
  }
}
