import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation
import Synchronization

/// The container and database of a command, with `cktool`'s flags.
struct DatabaseOptions: ParsableArguments {
  @Option(help: "Accepted and ignored: a server has one team.")
  var teamId: String?

  @Option(help: "The container's identifier.")
  var containerId: String

  @Option(help: "The environment of the container: development or production.")
  var environment = ContainerEnvironment.development

  @Option(help: "public, private or shared.")
  var databaseType = DatabaseScope.private

  @Option(help: "The user whose database it is, and as whom the command acts.")
  var user: String?

  @Option(
    help: "A user token instead of --user; CLOUDKIT_USER_TOKEN too. It takes --api-token."
  )
  var userToken: String?

  @Option(help: "The API token that goes with --user-token; without it the server's own is used.")
  var apiToken: String?

  /// Opens the database: missing tokens are fetched from the admin API.
  ///
  /// Unless `makesContainer`, the container must exist: one with a typing error would be created,
  /// and empty.
  private func open(
    _ connection: AdminConnection,
    makesContainer: Bool
  ) async throws -> DatabaseConnection {
    var connection = connection
    var token = userToken ?? ProcessInfo.processInfo.environment["CLOUDKIT_USER_TOKEN"]
    // The target of a copy has an empty one instead of the environment's, which is for the source.
    if token?.isEmpty == true { token = nil }
    // These two are enough for any service that speaks CloudKit's web services; an administrator's
    // token is not sent to it.
    if userToken?.isEmpty == false, apiToken != nil, user == nil { connection.token = "" }
    if token == nil, user == nil, try await !isAdministrator(connection) {
      // cktool's record verbs use the same flag for a user token.
      token = connection.token
      connection.token = connection.ownToken ?? ""
    }
    if token == nil, user == nil { token = SavedTokens.read().token(.user, for: connection.server) }
    var ownSignIn: DatabaseConnection.SignIn?
    // Before the sign-in, which would create the container.
    if !makesContainer, !connection.token.isEmpty {
      try await connection.requireContainer(containerId)
    }
    if token == nil, let user {
      let reply: UserToken = try await connection.call(
        .users(.signIn),
        ["userName": user, "container": containerId]
      )
      token = reply.webAuthToken
      ownSignIn = .init(userName: user, token: reply.webAuthToken)
    }
    if token == nil, databaseType == .public, !connection.token.isEmpty {
      // An administrator's management token opens the public database as that user; the operator's
      // belongs to no account, and its requests go through the admin API.
      do {
        let reply: UserToken = try await connection.call(
          .users(.signIn),
          ["container": containerId]
        )
        token = reply.webAuthToken
      } catch let error as ErrorDictionary where error.serverErrorCode == .authenticationRequired {
        return DatabaseConnection(
          connection: connection,
          container: containerId,
          environment: environment,
          scope: .public,
          apiToken: "",
          webAuthToken: nil,
          isOperators: true
        )
      }
    }
    guard token != nil || databaseType == .public else {
      throw CommandFailure(
        "AUTHENTICATION_REQUIRED",
        what: "no user is signed in",
        why: "a \(databaseType.rawValue) database belongs to a user",
        next: "name the user with --user, or give --user-token",
        exit: ExitCodes.notAuthorised
      )
    }
    return DatabaseConnection(
      connection: connection,
      container: containerId,
      environment: environment,
      scope: databaseType,
      apiToken: try await knownAPIToken(connection),
      webAuthToken: token,
      ownSignIn: ownSignIn
    )
  }

  /// Opens the database, runs the body, and ends the sign-in that was made for it.
  ///
  /// A script of a thousand commands would leave a thousand valid tokens, among which the user does not find a
  /// stranger's. URLs of files end with their sign-in: it stays where the command prints some.
  func use<Result>(
    _ connection: AdminConnection,
    makesContainer: Bool = false,
    printsFiles: Bool = true,
    _ body: (DatabaseConnection) async throws -> Result
  ) async throws -> Result {
    let database = try await open(connection, makesContainer: makesContainer)
    let outcome: Swift.Result<Result, any Error>
    do {
      outcome = .success(try await body(database))
    } catch {
      outcome = .failure(error)
    }
    if !printsFiles || !database.hasFiles { await database.endSignIn() }
    return try outcome.get()
  }

  /// Whether the connection's token opens the admin API; a missing token is not an error.
  private func isAdministrator(_ connection: AdminConnection) async throws -> Bool {
    guard !connection.token.isEmpty, connection.token != connection.ownToken else { return true }
    do {
      let _: CloudKitService.ServerStatus = try await connection.call(.server(.status), NoReply())
      return true
    } catch let error as ErrorDictionary where error.serverErrorCode == .authenticationFailed {
      return false
    }
  }

  private struct UserToken: Decodable { var webAuthToken: String }

  private func knownAPIToken(_ connection: AdminConnection) async throws -> String {
    if let apiToken { return apiToken }
    guard !connection.token.isEmpty else {
      throw CommandFailure(
        "NO_API_TOKEN",
        what: "the database was not opened",
        why: "a user token requires an API token, and only an administrator can look one up",
        next: "give --api-token",
        exit: ExitCodes.usage
      )
    }
    struct Body: Encodable {
      var container: String
      var environment: ContainerEnvironment
    }
    // Tokens of apps cannot be read; the server has a token of its own for commands.
    let own: [String: String] = try await connection.call(
      .tokens(.own),
      Body(container: containerId, environment: environment)
    )
    return own["token"] ?? ""
  }
}

/// A database of the web services.
struct DatabaseConnection: Sendable {
  let connection: AdminConnection
  let container: String
  let environment: ContainerEnvironment
  let scope: DatabaseScope
  let apiToken: String
  let webAuthToken: String?
  /// Whether requests are calls of the admin API with the operator's token.
  let isOperators: Bool
  /// The user token of the last reply: services renew tokens, and may accept each of them once.
  private let renewed = RenewedToken()
  private let ownSignIn: SignIn?
  private let files = FileNotice()

  /// A sign-in that a command made for itself.
  struct SignIn {
    var userName: String
    var token: String
  }

  /// Whether a reply had the URL of a file.
  var hasFiles: Bool { files.isNoted }

  init(
    connection: AdminConnection,
    container: String,
    environment: ContainerEnvironment,
    scope: DatabaseScope,
    apiToken: String,
    webAuthToken: String?,
    ownSignIn: SignIn? = nil,
    isOperators: Bool = false
  ) {
    self.ownSignIn = ownSignIn
    self.isOperators = isOperators
    self.connection = connection
    self.container = container
    self.environment = environment
    self.scope = scope
    self.apiToken = apiToken
    self.webAuthToken = webAuthToken
  }

  func call<Reply: Decodable>(
    _ endpoint: Endpoint,
    _ body: some Encodable,
    as type: Reply.Type = Reply.self
  ) async throws -> Reply {
    if isOperators {
      return try await connection.call(
        .database(.request),
        OperatorRequest(
          container: container,
          environment: environment,
          endpoint: endpoint.rawValue,
          body: String(decoding: try WireCoding.encode(body), as: UTF8.self)
        )
      )
    }
    var items = [(name: WebServiceName.apiToken, value: apiToken)]
    if let token = renewed.value ?? webAuthToken {
      items.append((WebServiceName.webAuthToken, token))
    }
    let path = WebServicePath(
      container: container,
      environment: environment,
      database: scope,
      endpoint: endpoint
    ).text(items: items)
    let response = try await connection.transport.send(
      WebServiceRequest(
        method: "POST",
        path: path,
        headers: [WebServiceName.capabilities: WebServiceName.exactDatesValue],
        body: try WireCoding.encode(body)
      )
    )
    let next = response.headers[WebServiceName.webAuthTokenHeader]
    if let next, !next.isEmpty { renewed.value = next }
    try connection.check(response)
    if response.body.range(of: Self.fileMember) != nil { files.note() }
    return try WireCoding.decode(type, from: response.body)
  }

  private static let fileMember = Data(#""downloadURL""#.utf8)

  /// Ends the sign-in that the command made for itself, if any.
  func endSignIn() async {
    guard let ownSignIn else { return }
    let id = SignInDescription.id(of: renewed.value ?? ownSignIn.token)
    do {
      try await connection.call(
        .users(.endSession),
        try WireCoding.encode(["userName": ownSignIn.userName, "id": id])
      )
    } catch {
      // The command's own result counts; the sign-in expires after half an hour.
      return
    }
  }

  /// The file at the URL of an asset.
  func download(_ url: String) async throws -> Data {
    try await connection.send(
      WebServiceRequest(method: "GET", path: url.replacing("${f}", with: "file"))
    )
  }

  /// Uploads a file for a field and returns the value to save.
  func upload(_ data: Data, type: String, field: String) async throws -> AssetValue {
    let tokens: UploadTokensResponse = try await call(
      .uploadAssets,
      UploadTokensRequest(tokens: [UploadTokenField(fieldName: field, recordType: type)])
    )
    guard let token = try tokens.tokens.first?.get() else {
      throw ErrorDictionary(.internalError, "the server returned no upload URL")
    }
    let reply = try await connection.send(
      WebServiceRequest(method: "POST", path: token.url, body: data)
    )
    return try WireCoding.decode(UploadedFileResponse.self, from: reply).singleFile
  }
}

/// The newest token of a connection.
private final class RenewedToken: Sendable {
  private let token = Mutex<String?>(nil)

  var value: String? {
    get { token.withLock { $0 } }
    set { token.withLock { $0 = newValue } }
  }
}

/// Whether something has happened.
private final class FileNotice: Sendable {
  private let noted = Mutex(false)

  var isNoted: Bool { noted.withLock { $0 } }

  func note() { noted.withLock { $0 = true } }
}

extension DatabaseScope: ExpressibleByArgument {}
