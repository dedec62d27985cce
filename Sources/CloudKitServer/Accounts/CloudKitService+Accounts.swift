import CloudKitWebServices
import Foundation

/// The life cycle of accounts: created, changed, disabled, deleted, purged.
extension CloudKitService {
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

  /// A page of all accounts, by name; nil for the first.
  package func accountDescriptions(
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

  package func hasAccount(named userName: String) throws -> Bool {
    try storage.read { try $0.account(userName: userName) } != nil
  }

  func account(named userName: String) throws -> StoredAccount {
    guard let account = try storage.read({ try $0.account(userName: userName) }) else {
      throw AdministrationError(description: "There is no account \"\(userName)\".")
    }
    return account
  }

  /// Changes an account; a new password, or disabling it, ends every session.
  package func changeAccount(_ userName: String, _ changes: AccountChanges) async throws {
    try await changeAccount(userName, changes, from: nil)
  }

  /// The same, for a user with the session `keeping`, or with the reset link `link`.
  ///
  /// The session and its device stay signed in, and an address that the user entered is not
  /// verified. The transaction uses the link up.
  func changeAccount(
    _ userName: String,
    _ changes: AccountChanges,
    from sender: SenderAddress?,
    keeping session: StoredSession? = nil,
    using link: DirectoryEntry? = nil
  ) async throws {
    let id = try account(named: userName).id
    try checkAddress(changes.emailAddress ?? "")
    let secret = try await changes.password.asyncMap { password in
      try checkNew(password, userName: userName)
      return try await newSecret(password, from: sender)
    }
    let (changed, address) = try await write {
      [storage] () -> (WriteBatch?, (StoredAccount, String?)) in
      try storage.read { snapshot in
        guard var account = try snapshot.account(id: id) else {
          throw AdministrationError(description: "There is no account \"\(userName)\".")
        }
        let address = try snapshot.verifiedAddress(of: account)
        if let secret { account.set(secret) }
        if let name = changes.givenName { account.givenName = name }
        if let name = changes.familyName { account.familyName = name }
        if let address = changes.emailAddress { account.emailAddress = address }
        let (before, revision) = try snapshot.state(of: account.id)
        var state = before
        if let flag = changes.isAdministrator { state.isAdministrator = flag }
        if let flag = changes.isDisabled {
          // A deleted account is enabled by restoring it: otherwise it would be purged with new
          // data.
          if before.deletedAt == nil {
            state.isDisabled = flag
          } else {
            state.wasDisabled = flag ? true : nil
          }
        }
        // An administrator who sets an address, even the same one, verifies it.
        if changes.emailAddress != nil {
          state.hasUnverifiedAddress = session != nil ? true : nil
        }
        var batch = WriteBatch()
        batch.accounts = [account]
        if let link {
          guard try snapshot.entry(link.key)?.revision == link.revision else {
            throw Self.usedLink
          }
          guard try self.mayUse(link, of: account, state, snapshot) else { throw Self.usedLink }
          // The new password ends the account's links, including this one; of two concurrent uses
          // one commits.
          batch.expectedEntries[link.key] = .some(link.revision)
          // The commit expects the entries that the check read: another server may change the second
          // factor, or link an identity (which is a new revision of the state), in between.
          let factor = SecondFactor.key(account.id)
          batch.expectedEntries[factor] = .some(try snapshot.entry(factor)?.revision)
        }
        batch.expectedEntries[AccountState.key(account.id)] = .some(revision)
        batch.savedEntries = [try state.entry(account.id, revision: (revision ?? 0) + 1)]
        if let number = changes.phoneNumber {
          try batch.setPhoneNumber(number, ofAccount: account.id, snapshot)
        }
        if changes.password != nil || state.isDisabled {
          try self.endSessions(of: account.id, keeping: session, snapshot, in: &batch)
        }
        if changes.emailAddress != nil {
          // Links to an address that was requested before would set that one, and links to a new
          // password were sent to the former one.
          let resets = try snapshot.entries(
            DirectoryRange(.passwordReset, owner: account.id, limit: .max)
          )
          let links = try snapshot.verifications(of: account.id).map(\.key) + resets.map(\.key)
          batch.removedEntries += links.filter { !batch.removedEntries.contains($0) }
        }
        return (batch, (account, address))
      }
    }
    if changes.password != nil { mails.notify(changed, at: address, of: .password, from: sender) }
    if let next = changes.emailAddress, let address, !EmailAddress.areSame(next, address) {
      mails.notify(changed, at: address, of: .address, from: sender)
    }
    if changes.password != nil || changes.isDisabled == true { credentialsEnded() }
    if changes.password != nil { try await forgetFailures(of: userName) }
  }

  /// Ends every session and device of an account, and their event URLs; except the session that is
  /// kept, and its device.
  func endSessions(
    of account: String,
    keeping kept: StoredSession? = nil,
    _ snapshot: any StorageSnapshot,
    in batch: inout WriteBatch
  ) throws {
    let grants = try snapshot.entries(
      DirectoryRange(.refreshToken, owner: account, limit: .max)
    )
    var keptSessions: Set<String> = kept.map { [$0.digest] } ?? []
    var keptGrant: String?
    for entry in grants {
      let sessions = try WireCoding.decode(RefreshGrant.self, from: entry.body).sessions
      guard let kept, sessions.contains(kept.digest) else {
        batch.removedEntries.append(entry.key)
        continue
      }
      keptGrant = entry.key.name
      keptSessions.formUnion(sessions)
    }
    batch.endedSessions += try snapshot.sessions(account: account).map(\.digest)
      .filter { !keptSessions.contains($0) }
    // Links that an administrator issued are for the account in its former state, and so is the
    // consent for a program that has not fetched its tokens yet.
    for kind in [
      DirectoryEntry.Kind.accountExport, .addressVerification, .deviceCode, .passwordReset,
    ] {
      batch.removedEntries += try snapshot.entries(
        DirectoryRange(kind, owner: account, limit: .max)
      ).map(\.key)
    }
    try devices.endDevices(of: account, snapshot, in: &batch) { binding in
      if let grant = binding.grant { return grant != keptGrant }
      return binding.session.map { !keptSessions.contains($0) } ?? true
    }
  }

  // MARK: Deletion

  /// Disables an account immediately; its data is removed after `purgeDelay`, or immediately.
  package func deleteAccount(_ userName: String, purgesNow: Bool = false) async throws {
    try await deleteAccount(userName, purgesNow: purgesNow, from: nil)
  }

  func deleteAccount(
    _ userName: String,
    purgesNow: Bool = false,
    from sender: SenderAddress?
  ) async throws {
    let account = try account(named: userName)
    let time = now
    try await write { [storage] in
      try storage.read { snapshot in
        let (before, revision) = try snapshot.state(of: account.id)
        var state = before
        if before.deletedAt == nil, before.isDisabled { state.wasDisabled = true }
        state.deletedAt = before.deletedAt ?? time
        state.isDisabled = true
        var batch = WriteBatch()
        batch.expectedEntries[AccountState.key(account.id)] = .some(revision)
        batch.savedEntries = [try state.entry(account.id, revision: (revision ?? 0) + 1)]
        try self.endSessions(of: account.id, snapshot, in: &batch)
        return (batch, ())
      }
    }
    credentialsEnded()
    mails.notify(account, of: .deletion, from: sender)
    if purgesNow { try await purge(account.id) }
  }

  /// Reverts a deletion before its purge; an account that was disabled before stays disabled.
  package func restoreAccount(_ userName: String) async throws {
    let account = try account(named: userName)
    try await write { [storage] in
      let (before, revision) = try storage.read { try $0.state(of: account.id) }
      guard before.deletedAt != nil else {
        throw AdministrationError(
          description:
            "The account \"\(userName)\" is not deleted; `users update` enables a disabled one."
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

  // MARK: Invitations

  /// Whether the server has an administrator.
  package func hasAdministrator() throws -> Bool {
    try storage.read { try $0.entries(DirectoryRange(.accountState, limit: .max)) }.contains {
      let state = try WireCoding.decode(AccountState.self, from: $0.body)
      return state.isAdministrator && !state.isDisabled
    }
  }

  /// The code of an invitation, valid once.
  package func invite(isAdministrator: Bool = false, by inviter: String = "") async throws -> String
  {
    let code = effects.randomness.bytes(24).base64URL
    let entry = DirectoryEntry(
      Invitation.key(code),
      owner: inviter,
      expires: now + Int64(limits.invitationLifetime * 1000),
      body: try WireCoding.encode(Invitation(isAdministrator: isAdministrator, by: inviter))
    )
    return try await write {
      var batch = WriteBatch()
      batch.savedEntries = [entry]
      return (batch, code)
    }
  }

  /// The URL at which a user creates an account with an invitation.
  package func signUpURL(invitation code: String) -> String {
    baseURL + Self.signUpPath(invitation: code)
  }

  package static func signUpPath(invitation code: String) -> String {
    "\(Route.Section.signUp.path)?invitation=\(code)"
  }

  /// Creates an account at a user's request, if the policy allows.
  func register(
    userName: String,
    password: String,
    emailAddress: String?,
    invitation code: String?,
    from sender: SenderAddress?
  ) async throws {
    let found = try code.flatMap { try invitation($0) }
    guard found != nil || configuration.registration == .open else {
      throw AdministrationError(
        description:
          "This server takes new accounts by invitation, and this invitation is not valid."
      )
    }
    guard !userName.isEmpty, userName.count <= limits.nameLength else {
      throw AdministrationError(
        description: "A user name has 1 to \(limits.nameLength) characters."
      )
    }
    let id = try await createAccount(
      userName: userName,
      password: password,
      emailAddress: emailAddress,
      isAdministrator: found?.invitation.isAdministrator ?? false,
      hasUnverifiedAddress: true,
      using: found?.entry,
      from: sender
    )
    auditLog.record("account.register", by: userName, about: userName, from: sender)
    guard mails.isOn, let account = try storage.read({ try $0.account(id: id) }),
      let address = account.emailAddress
    else { return }
    // The account was created all the same; its page can send the link again.
    do {
      try await beginVerification(of: address, for: account)
    } catch let error as ErrorDictionary where error.serverErrorCode == .throttled {
      logger.notice("a mail to a new address was not sent: the queue of mails is full")
    }
  }

  /// Throws for a text that is no e-mail address; an empty text removes the address.
  func checkAddress(_ address: String) throws(AdministrationError) {
    guard !address.isEmpty, let objection = EmailAddress.objection(to: address) else { return }
    throw AdministrationError(description: objection)
  }

  /// The address in a user name, if it is one.
  static func address(in userName: String) -> String? {
    EmailAddress.objection(to: userName) == nil ? userName : nil
  }

  /// The invitation of a code, if it is still valid.
  func invitation(_ code: String) throws -> (entry: DirectoryEntry, invitation: Invitation)? {
    guard let entry = try storage.read({ try $0.entry(Invitation.key(code)) }),
      (entry.expires ?? .max) > now
    else { return nil }
    return (entry, try WireCoding.decode(Invitation.self, from: entry.body))
  }
}
