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
  ) async throws -> AdminReply {
    switch verb {
    case .list: return try call.reply(["tokens": try apiTokenDescriptions()], .unaudited(.reads))
    case .create: return try await createToken(call)
    case .own: return try await ownToken(call)
    case .remove:
      let token = try call.read(NamedToken.self).token
      try await apiTokens.remove(token)
      return call.done(
        auditLog.record("token.remove", by: call, about: StoredAPIToken.prefix(of: token))
      )
    }
  }

  private func createToken(_ call: AdminCall) async throws -> AdminReply {
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
    return try call.reply(
      ["token": token],
      auditLog.record("token.create", by: call, about: new.container ?? "")
    )
  }

  /// The server's own token, which its commands ask for with each run.
  private func ownToken(_ call: AdminCall) async throws -> AdminReply {
    let own: OwnToken = try call.read()
    guard NameRules.isContainerName(own.container, limits) else {
      throw AdministrationError(description: "Name the container that the token is for.")
    }
    let token = try await apiTokens.ownToken(
      opening: own.container,
      environment: own.environment ?? .development
    )
    return try call.reply(
      ["token": token.text],
      token.isNew
        ? auditLog.record("token.create", by: call, about: own.container) : .unaudited(.routine)
    )
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
  ) async throws -> AdminReply {
    switch verb {
    case .list: return try call.reply(["keys": try serverKeys.all()], .unaudited(.reads))
    case .add:
      let new: NewKey = try call.read()
      let key = try await serverKeys.add(
        publicKey: new.publicKey,
        name: new.name ?? "",
        container: new.container,
        environment: new.environment ?? .development,
        keyID: new.keyID
      )
      return try call.reply(
        key,
        auditLog.record("key.add", by: call, about: key.keyID, detail: key.container)
      )
    case .remove:
      let key: NamedKey = try call.read()
      try await serverKeys.remove(key.keyID)
      return call.done(auditLog.record("key.remove", by: call, about: key.keyID))
    }
  }

  private struct AuditReply: Encodable {
    var lines: [AuditLine]
    var last: String?
  }

  func listAudit(_ call: AdminCall) async throws -> AdminReply {
    let found = try await auditLog.lines(try call.read())
    return try call.reply(AuditReply(lines: found.lines, last: found.last), .unaudited(.looksUp))
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
  ) async throws -> AdminReply {
    switch verb {
    case .status: return try call.reply(try status(), .unaudited(.reads))
    case .housekeep:
      try await housekeep()
      return call.done(.unaudited(.routine))
    case .newIncarnation:
      try await beginNewIncarnation()
      let trace = auditLog.record("server.new-incarnation", by: call, about: storage.incarnation)
      return try call.reply(["incarnation": storage.incarnation], trace)
    case .rotateKey:
      let rotation: KeyRotation = try call.read()
      let id = try rotateKeys(formerHaveLeaked: rotation.leaked ?? false)
      let trace = auditLog.record(
        "encryption.rotate",
        by: call,
        about: id,
        detail: rotation.leaked == true ? "the former keys have leaked" : nil
      )
      return try call.reply(["keyID": id], trace)
    case .renewToken:
      try renewAdministratorToken()
      return call.done(auditLog.record("server.renew-token", by: call, about: ""))
    }
  }
}
