import CloudKitWebServices
import Crypto
import Foundation

/// What an administrator does: accounts, API tokens, sign-ins, schemas.
extension CloudKitService {
  /// A failure of an administrator's call, in a sentence.
  package struct AdministrationError: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String
  }

  /// Makes an account and returns its ID.
  @discardableResult
  package func createAccount(
    userName: String,
    password: String,
    givenName: String? = nil,
    familyName: String? = nil,
    emailAddress: String? = nil
  ) async throws -> String {
    guard !userName.isEmpty, !password.isEmpty else {
      throw AdministrationError(description: "An account needs a user name and a password.")
    }
    let salt = effects.randomness.bytes(16)
    let account = StoredAccount(
      id: effects.uuid().uuidString,
      userName: userName,
      passwordSalt: salt,
      passwordHash: PasswordHash.make(password, salt: salt, rounds: limits.passwordRounds),
      passwordRounds: limits.passwordRounds,
      givenName: givenName,
      familyName: familyName,
      emailAddress: emailAddress ?? (userName.contains("@") ? userName : nil)
    )
    return try await write { [storage] in
      guard try storage.read({ try $0.account(userName: userName) }) == nil else {
        throw AdministrationError(description: "There is an account \"\(userName)\" already.")
      }
      var batch = WriteBatch()
      batch.accounts = [account]
      return (batch, account.id)
    }
  }

  /// The user names of all accounts.
  package func userNames() throws -> [String] {
    try storage.read { try $0.accounts() }.map(\.userName)
  }

  /// Makes an API token; without a container it opens any container of the environment.
  package func createAPIToken(
    container: String? = nil,
    environment: ContainerEnvironment = .development,
    allowedOrigins: [String] = [],
    redirectURL: String? = nil
  ) async throws -> String {
    let token = StoredAPIToken(
      token: effects.randomness.bytes(32).hexadecimal,
      container: container,
      environment: environment,
      allowedOrigins: allowedOrigins,
      redirectURL: redirectURL
    )
    return try await write {
      var batch = WriteBatch()
      batch.apiTokens = [token]
      batch.container = container
      return (batch, token.token)
    }
  }

  /// The first API token for any container in development; made at the first start.
  package func bootstrapAPIToken() async throws -> String {
    let known = try storage.read { try $0.apiTokens() }
    let first = known.first { $0.container == nil && $0.environment == .development }
    if let first { return first.token }
    return try await createAPIToken()
  }

  /// Signs a person in without the page and returns the web auth token.
  package func signIn(
    userName: String,
    password: String,
    container: String,
    isKept: Bool = true
  ) async throws -> String {
    let account = try await checkPassword(userName: userName, password: password)
    return try await startSession(account: account, container: container, isKept: isKept)
  }

  /// Signs a person in on the administrator's word.
  package func signIn(
    userName: String,
    container: String,
    isKept: Bool = true
  ) async throws -> String {
    guard let account = try storage.read({ try $0.account(userName: userName) }) else {
      throw AdministrationError(description: "There is no account \"\(userName)\".")
    }
    return try await startSession(account: account, container: container, isKept: isKept)
  }

  package func containers() throws -> [String] {
    try storage.read { try $0.containers() }
  }

  /// The schema of a container's environment; an empty one has the type `Users`.
  package func schema(
    container: String,
    environment: ContainerEnvironment
  ) throws -> DatabaseSchema {
    try storage.read { try $0.schema(container: container, environment: environment) }?.schema
      ?? DatabaseSchema()
  }

  /// Replaces a schema.
  package func setSchema(
    _ schema: DatabaseSchema,
    container: String,
    environment: ContainerEnvironment
  ) async throws {
    try await write { [storage] in
      let stored = try storage.read {
        try $0.schema(container: container, environment: environment)
      }
      var next = schema
      next.numberRoles(after: stored?.schema ?? DatabaseSchema())
      var batch = WriteBatch()
      batch.container = container
      batch.replaceSchema(stored, by: next, container: container, environment: environment)
      return (batch, ())
    }
  }

  /// Tells clients that the data was replaced by an older copy: their change tokens expire.
  package func beginNewIncarnation() async throws {
    try await writing.run { [storage] in try storage.beginNewIncarnation() }
  }

  // MARK: Sessions

  /// The account of a right password.
  func checkPassword(userName: String, password: String) async throws -> StoredAccount {
    let name = userName.lowercased()
    if let seconds = signIns.pause(for: name, now: now, limits: limits) {
      throw ErrorDictionary(
        .throttled,
        "too many wrong passwords, try again later",
        retryAfter: seconds
      )
    }
    let known = try storage.read { try $0.account(userName: userName) }
    // An unknown name costs the same time as a wrong password.
    let hash = PasswordHash.make(
      password,
      salt: known?.passwordSalt ?? Data(count: 16),
      rounds: known?.passwordRounds ?? limits.passwordRounds
    )
    guard let known, PasswordHash.isEqual(hash, known.passwordHash) else {
      signIns.noteFailure(of: name, now: now, limits: limits)
      throw ErrorDictionary(.authenticationFailed, "wrong user name or password")
    }
    signIns.noteSuccess(of: name)
    return known
  }

  func startSession(
    account: StoredAccount,
    container: String,
    isKept: Bool
  ) async throws -> String {
    let token = effects.randomness.bytes(32).base64URL
    let user = try await user(account: account.id, container: container)
    let lifetime = isKept ? limits.keptSessionLifetime : limits.sessionLifetime
    let session = StoredSession(
      digest: Self.digest(token),
      container: container,
      account: account.id,
      userRecordName: user.recordName,
      expires: now + Int64(lifetime * 1000),
      isKept: isKept
    )
    return try await write {
      var batch = WriteBatch()
      batch.sessions = [session]
      return (batch, token)
    }
  }
}
