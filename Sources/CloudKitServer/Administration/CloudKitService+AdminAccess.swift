import CloudKitWebServices
import Foundation
import Synchronization

/// Admin calls about API tokens, server-to-server keys, the log and the server itself.
extension CloudKitService {
  /// An API token as an administrator sees it.
  package struct APITokenDescription: Codable, Hashable, Sendable {
    /// Its first characters; the whole token was shown when it was created.
    package var prefix: String
    /// Nil: any container of the environment.
    package var container: String?
    package var environment: ContainerEnvironment
    package var allowedOrigins: [String]
    package var redirectURL: String?
  }

  package func apiTokenDescriptions() throws -> [APITokenDescription] {
    try storage.read { try $0.apiTokens() }.map {
      APITokenDescription(
        prefix: $0.prefix,
        container: $0.scope.column,
        environment: $0.environment,
        allowedOrigins: $0.allowedOrigins,
        redirectURL: $0.redirectURL
      )
    }
  }

  private struct NewToken: Decodable {
    var container: String?
    var environment: ContainerEnvironment?
    var allowedOrigins: [String]?
    var redirectURL: String?
  }

  private struct OwnToken: Decodable {
    var container: String
    var environment: ContainerEnvironment?
  }

  private struct NamedToken: Decodable {
    var token: String
  }

  func administerTokens(
    _ verb: AdminEndpoint.Tokens,
    _ call: AdminCall
  ) async throws -> Data {
    switch verb {
    case .list: return try call.write(["tokens": try apiTokenDescriptions()])
    case .create:
      let new: NewToken = try call.read()
      for origin in new.allowedOrigins ?? [] where !Self.isOrigin(origin) {
        throw AdministrationError(
          description: "\(origin) is not an origin, such as https://app.example.org."
        )
      }
      let token = try await apiTokens.create(
        container: new.container,
        environment: new.environment ?? .development,
        allowedOrigins: new.allowedOrigins ?? [],
        redirectURL: new.redirectURL
      )
      auditLog.record("token.create", by: call, about: new.container ?? "")
      return try call.write(["token": token])
    case .own:
      let own: OwnToken = try call.read()
      guard NameRules.isContainerName(own.container, limits) else {
        throw AdministrationError(description: "Name the container that the token is for.")
      }
      let token = try await apiTokens.token(
        opening: own.container,
        environment: own.environment ?? .development
      )
      return try call.write(["token": token])
    case .remove:
      let token: NamedToken = try call.read()
      try await apiTokens.remove(token.token)
      auditLog.record("token.remove", by: call, about: StoredAPIToken.prefix(of: token.token))
      return AdminCall.done
    }
  }

  /// Whether the text is scheme, host and port as browsers send them, without a path.
  private static func isOrigin(_ text: String) -> Bool {
    guard let parts = URLComponents(string: text), parts.scheme != nil, parts.host != nil else {
      return false
    }
    return parts.path.isEmpty && parts.query == nil && parts.fragment == nil && parts.user == nil
  }

  private struct NewKey: Decodable {
    var publicKey: String
    var name: String?
    var container: String
    var environment: ContainerEnvironment?
    var keyID: String?
  }

  private struct NamedKey: Decodable {
    var keyID: String
  }

  func administerKeys(
    _ verb: AdminEndpoint.Keys,
    _ call: AdminCall
  ) async throws -> Data {
    switch verb {
    case .list: return try call.write(["keys": try serverKeys.all()])
    case .add:
      let new: NewKey = try call.read()
      let key = try await serverKeys.add(
        publicKey: new.publicKey,
        name: new.name ?? "",
        container: new.container,
        environment: new.environment ?? .development,
        keyID: new.keyID
      )
      auditLog.record("key.add", by: call, about: key.keyID, detail: key.container)
      return try call.write(key)
    case .remove:
      let key: NamedKey = try call.read()
      try await serverKeys.remove(key.keyID)
      auditLog.record("key.remove", by: call, about: key.keyID)
      return AdminCall.done
    }
  }

  private struct AuditReply: Encodable {
    var lines: [AuditLine]
    var last: String?
  }

  func listAudit(_ call: AdminCall) async throws -> Data {
    let found = try await auditLog.lines(try call.read())
    return try call.write(AuditReply(lines: found.lines, last: found.last))
  }

  /// The server's status in figures.
  package struct ServerStatus: Codable, Hashable, Sendable {
    package var baseURL: String
    package var containers: [String]
    package var incarnation: String
    package var users: Int
    package var hasAdministrator: Bool
  }

  package func status() throws -> ServerStatus {
    ServerStatus(
      baseURL: baseURL,
      containers: try containers(),
      incarnation: storage.incarnation,
      users: try storage.read { try $0.accountCount() },
      hasAdministrator: try accounts.hasAdministrator()
    )
  }

  private struct KeyRotation: Decodable {
    /// Whether texts that the former keys sealed become invalid.
    var leaked: Bool?
  }

  /// Creates new keys for encrypted fields and for signing; returns the field key's ID.
  func rotateKeys(formerHaveLeaked: Bool) throws -> String {
    let id = try vault.rotate(now: now, formerHaveLeaked: formerHaveLeaked)
    signer.use(vault.signingKeys)
    return id
  }

  /// Creates a new operator's token, and refuses the former one from now on.
  func renewAdministratorToken() throws {
    guard let renew = configuration.renewAdministratorToken else {
      throw AdministrationError(description: "This server has no operator's token.")
    }
    // Serialized: with two calls at once, the file and the server must keep the same token.
    try administratorToken.withLock { $0 = try renew() }
  }

  func administerServer(
    _ verb: AdminEndpoint.Server,
    _ call: AdminCall
  ) async throws -> Data {
    switch verb {
    case .status: return try call.write(try status())
    case .housekeep:
      try await housekeep()
      return AdminCall.done
    case .newIncarnation:
      try await beginNewIncarnation()
      auditLog.record("server.new-incarnation", by: call, about: storage.incarnation)
      return try call.write(["incarnation": storage.incarnation])
    case .rotateKey:
      let rotation: KeyRotation = try call.read()
      let id = try rotateKeys(formerHaveLeaked: rotation.leaked ?? false)
      auditLog.record(
        "encryption.rotate",
        by: call,
        about: id,
        detail: rotation.leaked == true ? "the former keys have leaked" : nil
      )
      return try call.write(["keyID": id])
    case .renewToken:
      try renewAdministratorToken()
      auditLog.record("server.renew-token", by: call, about: "")
      return AdminCall.done
    }
  }
}
