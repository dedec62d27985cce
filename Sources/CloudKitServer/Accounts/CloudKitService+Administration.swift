import CloudKitWebServices
import Crypto
import Foundation

/// Actions of administrators: accounts, sign-ins, schemas.
extension CloudKitService {
  /// Creates an account and returns its ID.
  @discardableResult
  package func createAccount(
    userName: String,
    password: String,
    givenName: String? = nil,
    familyName: String? = nil,
    emailAddress: String? = nil,
    isAdministrator: Bool = false
  ) async throws -> String {
    try await createAccount(
      userName: userName,
      password: password,
      givenName: givenName,
      familyName: familyName,
      emailAddress: emailAddress,
      isAdministrator: isAdministrator,
      using: nil,
      from: nil
    )
  }

  /// Creates an account, and uses an invitation up in the same transaction.
  @discardableResult
  func createAccount(
    userName: String,
    password: String,
    givenName: String? = nil,
    familyName: String? = nil,
    emailAddress: String? = nil,
    isAdministrator: Bool,
    hasUnverifiedAddress: Bool = false,
    identity: ExternalIdentity? = nil,
    using invitation: DirectoryEntry?,
    from sender: SenderAddress?
  ) async throws -> String {
    let userName = StoredAccount.normalized(userName)
    guard !userName.isEmpty, !password.isEmpty else {
      throw AdministrationError(description: "An account needs a user name and a password.")
    }
    if let objection = PersonName.objection(to: userName) {
      throw AdministrationError(description: objection)
    }
    try checkAddress(emailAddress ?? "")
    try checkNew(password, userName: userName)
    let secret = try await newSecret(password, from: sender)
    let account = StoredAccount(
      id: effects.uuid().uuidString,
      userName: userName,
      passwordSalt: secret.salt,
      passwordHash: secret.hash,
      passwordRounds: secret.cost.stored,
      givenName: givenName,
      familyName: familyName,
      emailAddress: emailAddress ?? Self.address(in: userName)
    )
    return try await write { [storage] in
      if let identity, try storage.read({ try $0.entry(identity.key) }) != nil {
        throw AdministrationError(description: "The account exists already. Please start again.")
      }
      guard try storage.read({ try $0.account(userName: userName) }) == nil else {
        throw AdministrationError(description: "There is an account \"\(userName)\" already.")
      }
      var batch = WriteBatch()
      batch.accounts = [account]
      var state = AccountState(isAdministrator: isAdministrator)
      if hasUnverifiedAddress, account.emailAddress != nil { state.hasUnverifiedAddress = true }
      if state != AccountState() {
        batch.savedEntries = [try state.entry(account.id, revision: 1)]
      }
      if let identity {
        // Two concurrent first sign-ins create one account.
        batch.expectedEntries[identity.key] = .some(nil)
        batch.savedEntries.append(try identity.entry(for: account.id))
      }
      if let invitation {
        guard try storage.read({ try $0.entry(invitation.key) }) != nil else {
          throw AdministrationError(description: "This invitation was used already.")
        }
        batch.expectedEntries[invitation.key] = .some(invitation.revision)
        batch.removedEntries = [invitation.key]
      }
      return (batch, account.id)
    }
  }

  /// Signs a user in without the page and returns the web auth token.
  package func signIn(
    userName: String,
    password: String,
    container: String,
    isKept: Bool = true
  ) async throws -> String {
    let account = try await checkPassword(userName: userName, password: password, from: nil)
    return try await startSession(account: account, container: container, isKept: isKept)
  }

  /// Signs a user in at an administrator's request.
  package func signIn(
    userName: String,
    container: String,
    isKept: Bool = true
  ) async throws -> String {
    let account = try account(named: userName)
    guard try !storage.read({ try $0.state(of: account.id).0.isDisabled }) else {
      throw AdministrationError(description: "The account \"\(userName)\" may not sign in.")
    }
    return try await startSession(account: account, container: container, isKept: isKept)
  }

  package func containers() throws -> [String] {
    try storage.read { try $0.containers() }
  }

  /// Expires the change tokens of all clients, because the data was replaced by an older copy.
  package func beginNewIncarnation() async throws {
    try await writer.directoryLane.run { [storage] in try storage.beginNewIncarnation() }
  }

  // MARK: Sessions

  func startSession(
    account: StoredAccount,
    container: String,
    isKept: Bool
  ) async throws -> String {
    let (token, session) = try await makeSession(
      account: account.id,
      container: container,
      isKept: isKept
    )
    return try await write { [storage] in
      try storage.read { snapshot in
        var batch = WriteBatch()
        try self.expectOpen(account, snapshot, in: &batch)
        batch.sessions = [session]
        return (batch, token)
      }
    }
  }

  /// Stores a session if its account is unchanged since it was authenticated.
  func begin(_ session: StoredSession, of account: StoredAccount) async throws {
    try await write { [storage] in
      try storage.read { snapshot in
        var batch = WriteBatch()
        try self.expectOpen(account, snapshot, in: &batch)
        batch.sessions = [session]
        return (batch, ())
      }
    }
  }

  /// Throws if the account was disabled, removed or given another password since it was read; also
  /// by another server.
  func expectOpen(
    _ account: StoredAccount,
    _ snapshot: any StorageSnapshot,
    in batch: inout WriteBatch
  ) throws {
    let (state, revision) = try snapshot.state(of: account.id)
    guard !state.isDisabled,
      try snapshot.account(id: account.id)?.passwordHash == account.passwordHash
    else { throw ErrorDictionary(.authenticationFailed, "the account may not sign in") }
    batch.expectedEntries[AccountState.key(account.id)] = .some(revision)
  }

  /// Creates a user token and the session to store for it.
  ///
  /// Container names have no slash: sessions of the administration and of the account page have
  /// names with one, and are only created by their own functions.
  func makeSession(
    account: String,
    container: String,
    isKept: Bool
  ) async throws -> (token: String, session: StoredSession) {
    guard NameRules.isContainerName(container, limits) else {
      throw ErrorDictionary(.badRequest, "invalid container")
    }
    let token = effects.randomness.bytes(32).base64URL
    let user = try await users.user(account: account, container: container)
    let lifetime = isKept ? limits.keptSessionLifetime : limits.sessionLifetime
    let session = StoredSession(
      digest: Self.digest(token),
      container: container,
      account: account,
      userRecordName: user.recordName,
      expires: now + Int64(lifetime * 1000),
      isKept: isKept
    )
    return (token, session)
  }
}
