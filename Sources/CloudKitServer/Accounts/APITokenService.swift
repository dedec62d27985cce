import CloudKitWebServices
import Effects
import Foundation

/// API tokens: the apps' own, and those that the server created for its banner and commands.
package final class APITokenService: Sendable {
  private let storage: any Storage
  private let writer: StorageWriter
  private let vault: FieldVault
  private let sessions: SessionService
  private let effects: Effects

  init(
    storage: any Storage,
    writer: StorageWriter,
    vault: FieldVault,
    sessions: SessionService,
    effects: Effects
  ) {
    self.storage = storage
    self.writer = writer
    self.vault = vault
    self.sessions = sessions
    self.effects = effects
  }

  /// The stored row of a token.
  func token(_ text: String) throws -> StoredAPIToken? {
    try storage.read { try $0.apiToken(digest: TokenDigest.of(text)) }
  }

  /// Creates an API token; without a container it is valid for any container of the environment.
  ///
  /// Only the reply has the token: the storage has its digest.
  package func create(
    container: String? = nil,
    environment: ContainerEnvironment = .development,
    allowedOrigins: [String] = [],
    redirectURL: String? = nil
  ) async throws -> String {
    try await create(
      container: container,
      environment: environment,
      allowedOrigins: allowedOrigins,
      redirectURL: redirectURL,
      isOwn: false
    )
  }

  private func create(
    container: String?,
    environment: ContainerEnvironment,
    allowedOrigins: [String] = [],
    redirectURL: String? = nil,
    isOwn: Bool
  ) async throws -> String {
    if let redirectURL, !Self.mayTakeTokens(redirectURL) {
      throw AdministrationError(
        description:
          "\(redirectURL) cannot receive user tokens: give an https URL, an http URL of "
          + "this machine, or an app's own scheme with a point in it, such as org.example.app."
      )
    }
    let text = effects.randomness.bytes(32).hexadecimal
    let token = StoredAPIToken(
      digest: TokenDigest.of(text),
      prefix: StoredAPIToken.prefix(of: text),
      sealed: isOwn ? try vault.seal(Data(text.utf8), for: Self.ownTokenPurpose) : nil,
      scope: APITokenScope(column: container),
      environment: environment,
      allowedOrigins: allowedOrigins,
      redirectURL: redirectURL
    )
    return try await writer.write {
      var batch = WriteBatch()
      batch.apiTokens = [token]
      batch.container = container
      return (batch, text)
    }
  }

  /// Whether user tokens may be sent to a URL: over TLS, within the machine, or to an app with a
  /// scheme of its own (RFC 8252, 7.1) that cannot be confused with another.
  private static func mayTakeTokens(_ address: String) -> Bool {
    guard let parts = URLComponents(string: address), let scheme = parts.scheme?.lowercased(),
      parts.user == nil, parts.fragment == nil
    else { return false }
    let host = parts.host?.lowercased() ?? ""
    return switch scheme {
    case "https": !host.isEmpty
    case "http": LoopbackHost.contains(host)
    default: scheme.contains(".")
    }
  }

  // MARK: The server's own

  private static let ownTokenPurpose = "API token"

  /// The server's own API token for any container in development; created at the first start.
  package func bootstrap() async throws -> String {
    try await own(container: nil, environment: .development).text
  }

  /// The server's own API token for the container in the environment; created if there is none.
  ///
  /// In development it is valid for every container, so that a second app needs no second token.
  /// The container is created too.
  package func token(
    opening container: String,
    environment: ContainerEnvironment
  ) async throws -> String {
    try await ownToken(opening: container, environment: environment).text
  }

  /// The server's own token for a container, and whether this call created it.
  func ownToken(
    opening container: String,
    environment: ContainerEnvironment
  ) async throws -> (text: String, isNew: Bool) {
    let token = try await own(
      container: environment == .development ? nil : container,
      environment: environment
    )
    try await writer.write {
      var batch = WriteBatch()
      batch.container = container
      return (batch, ())
    }
    return token
  }

  /// A token that can be shown again: it is stored encrypted, with a key that is not in the
  /// database.
  private func own(
    container: String?,
    environment: ContainerEnvironment
  ) async throws -> (text: String, isNew: Bool) {
    let scope = APITokenScope(column: container)
    let known = try storage.read { try $0.apiTokens() }.filter {
      $0.environment == environment && $0.scope.covers(scope)
        && $0.allowedOrigins.isEmpty && $0.redirectURL == nil
    }
    for token in known {
      // If its key is lost, apps that have the token can still use it; the server creates another
      // for itself.
      guard let sealed = token.sealed,
        let bytes = try? vault.open(sealed, for: Self.ownTokenPurpose)
      else { continue }
      let text = String(decoding: bytes, as: UTF8.self)
      if TokenDigest.of(text) == token.digest { return (text, false) }
    }
    return (try await create(container: container, environment: environment, isOwn: true), true)
  }

  // MARK: Removal

  /// Removes an API token, given in full or by the prefix that lists show: apps that use it are
  /// refused from now on.
  package func remove(_ text: String) async throws {
    try await writer.write { [storage] in
      let found = try storage.read { snapshot in
        if let token = try snapshot.apiToken(digest: TokenDigest.of(text)) { return [token] }
        return try snapshot.apiTokens().filter { !$0.prefix.isEmpty && $0.prefix == text }
      }
      guard let token = found.first else {
        throw AdministrationError(description: "There is no such API token.")
      }
      guard found.count == 1 else {
        throw AdministrationError(
          description: "Several API tokens begin with \(text); give the whole token."
        )
      }
      var batch = WriteBatch()
      batch.removedAPITokens = [token.digest]
      return (batch, ())
    }
    sessions.cache.forgetSessions()
  }
}

extension StoredAPIToken {
  /// The number of characters of a token that are kept: a few of 64, which identify it but give no
  /// access.
  static func prefix(of token: String) -> String { String(token.prefix(8)) }
}
