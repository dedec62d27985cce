import AsyncHTTPClient
import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Foundation
import Logging
import NIOCore
import Testing

/// A service with one user, in its own folder, on a socket with a free port.
struct TestCloud: Sendable {
  static let container = "iCloud.org.example.tests"

  let service: CloudKitService
  let server: RunningHTTPServer
  let apiToken: String
  let webAuthToken: String

  static let userName = "anna"
  static let password = "correct horse"

  /// Serves the folder's data while `body` runs.
  static func run(
    in folder: URL,
    port: Int = 0,
    adjust: (inout ServiceConfiguration) -> Void = { _ in },
    _ body: (TestCloud) async throws -> Void
  ) async throws {
    var limits = ServiceLimits()
    limits.passwordRounds = 10
    limits.passwordRule = .any
    var configuration = ServiceConfiguration(dataFolder: folder, limits: limits)
    adjust(&configuration)
    let service = try CloudKitService(configuration)
    let outcome: Result<Void, any Error>
    do {
      if try service.accounts.descriptions().isEmpty {
        try await service.createAccount(userName: userName, password: password)
      }
      let cloud = TestCloud(
        service: service,
        server: try await CloudKitHTTPServer(
          service: service,
          configuration: .init(port: port),
          logger: .quiet
        ).start(),
        apiToken: try await service.apiTokens.token(opening: container, environment: .development),
        webAuthToken: try await service.signIn(userName: userName, container: container)
      )
      do {
        try await body(cloud)
      } catch {
        try await cloud.server.stop()
        throw error
      }
      try await cloud.server.stop()
      outcome = .success(())
    } catch {
      outcome = .failure(error)
    }
    await service.shutdown()
    try outcome.get()
  }

  var url: String { server.address.text }

  /// Calls a verb of the private database as the user.
  func call(
    _ verb: String,
    _ body: String,
    database: String = "private",
    apiToken: String? = nil,
    webAuthToken: String? = "",
    client: String? = nil
  ) async throws -> JSONReply {
    var items = [("ckAPIToken", apiToken ?? self.apiToken)]
    if let token = webAuthToken {
      items.append(("ckWebAuthToken", token.isEmpty ? self.webAuthToken : token))
    }
    if let client { items.append(("clientId", client)) }
    let query = items.map { "\($0.0)=\(WebServicePath.escape($0.1))" }.joined(separator: "&")
    let path =
      verb.hasPrefix("tokens/")
      ? "/device/1/\(Self.container)/development/\(verb)"
      : "/database/1/\(Self.container)/development/\(database)/\(verb)"
    return JSONReply(try await post(url + path + "?" + query, Data(body.utf8)))
  }

  func post(_ url: String, _ body: Data) async throws -> HTTPReply {
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    // As browsers send a simple request; the type is ignored.
    request.headers.add(name: "Content-Type", value: "text/plain")
    request.body = .bytes(ByteBuffer(data: body))
    return try await send(request)
  }

  func get(_ url: String) async throws -> HTTPReply {
    try await send(HTTPClientRequest(url: url))
  }
}

/// A reply parsed as JSON, with values found by path.
struct JSONReply {
  let reply: HTTPReply
  private let object: Any?

  init(_ reply: HTTPReply) {
    self.reply = reply
    object = try? JSONSerialization.jsonObject(with: reply.body, options: .fragmentsAllowed)
  }

  var status: Int { reply.status }

  /// The value at a path such as `records/0/recordName`; nil if there is none.
  subscript(path: String) -> Any? {
    path.split(separator: "/").reduce(object) { value, key in
      if let index = Int(key) {
        guard let array = value as? [Any], array.indices.contains(index) else { return nil }
        return array[index]
      }
      return (value as? [String: Any])?[String(key)]
    }
  }

  func text(_ path: String) -> String? { self[path] as? String }

  func count(_ path: String) -> Int? { (self[path] as? [Any])?.count }
}

/// A folder that is removed after the body.
func withTemporaryFolder(_ body: (URL) async throws -> Void) async throws {
  let folder = FileManager.default.temporaryDirectory
    .appendingPathComponent("watershed-http-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  try await body(folder)
}
