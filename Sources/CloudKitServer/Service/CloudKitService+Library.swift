import CloudKitWebServices
import Crypto
import Effects
import Foundation

/// Calls for a program that embeds the service: accounts, sign-ins, API tokens.
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
    try await accounts.create(
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

  /// Signs a user in without the page and returns the web auth token.
  package func signIn(
    userName: String,
    password: String,
    container: String,
    isKept: Bool = true
  ) async throws -> String {
    let account = try await passwords.check(userName: userName, password: password, from: nil)
    return try await sessions.start(account: account, container: container, isKept: isKept)
  }

  /// Signs a user in at an administrator's request.
  package func signIn(
    userName: String,
    container: String,
    isKept: Bool = true
  ) async throws -> String {
    let account = try storage.account(named: userName)
    guard try !storage.read({ try $0.state(of: account.id).0.isDisabled }) else {
      throw AdministrationError(description: "The account \"\(userName)\" may not sign in.")
    }
    return try await sessions.start(account: account, container: container, isKept: isKept)
  }

  package func containers() throws -> [String] {
    try storage.read { try $0.containers() }
  }

  /// Creates an API token; without a container it is valid for any container of the environment.
  package func createAPIToken(
    container: String? = nil,
    environment: ContainerEnvironment = .development,
    allowedOrigins: [String] = [],
    redirectURL: String? = nil
  ) async throws -> String {
    try await apiTokens.create(
      container: container,
      environment: environment,
      allowedOrigins: allowedOrigins,
      redirectURL: redirectURL
    )
  }

  /// The server's own API token for any container in development; created at the first start.
  package func bootstrapAPIToken() async throws -> String { try await apiTokens.bootstrap() }

  /// Expires the change tokens of all clients, because the data was replaced by an older copy.
  package func beginNewIncarnation() async throws {
    try await writer.directoryLane.run { [storage] in try storage.beginNewIncarnation() }
  }
}
