import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation
import OpenCloudKit

/// Which server a command speaks to.
struct ServerOptions: ParsableArguments {
  @Option(
    name: .customLong("data"),
    help: "The data folder of a server of this machine, running or not; also WATERSHED_DATA."
  )
  var folder = ProcessInfo.processInfo.environment["WATERSHED_DATA"] ?? "./watershed-data"

  @Option(help: "The PostgreSQL of a stopped server, as it was started with.")
  var database: String?

  @Option(
    help:
      "A server elsewhere, such as https://cloud.example.org; takes --token too. Also WATERSHED_SERVER."
  )
  var server: String?

  @Option(
    name: [.short, .customLong("token")],
    help:
      "An administrator's bearer token; also WATERSHED_ADMIN_TOKEN or CLOUDKIT_MANAGEMENT_TOKEN, or one that `watershed tokens save` keeps."
  )
  var token: String?

  /// The token of the command line, or the environment's.
  var givenToken: String? {
    let environment = ProcessInfo.processInfo.environment
    return token ?? environment["WATERSHED_ADMIN_TOKEN"]
      ?? environment["CLOUDKIT_MANAGEMENT_TOKEN"]
  }

  /// Connects, runs the body, and lets go of what was opened.
  ///
  /// A running server is asked; beside a folder whose server does not run, the same calls are
  /// answered in this process. So one command line works either way.
  func connect<Result>(_ body: (AdminConnection) async throws -> Result) async throws -> Result {
    if let server = server ?? ProcessInfo.processInfo.environment["WATERSHED_SERVER"] {
      guard let url = URL(string: server), url.host != nil else {
        throw ValidationError("\(server) is not a server's address.")
      }
      return try await body(
        AdminConnection(
          transport: HTTPTransport(baseURL: url),
          token: givenToken ?? SavedTokens.read()[.management] ?? ""
        )
      )
    }
    let place = URL(fileURLWithPath: folder, isDirectory: true).standardizedFileURL
    if let running = RunningServerNote.read(in: place) {
      return try await body(
        AdminConnection(
          // The note is the server's own: only who owns the folder can have written it.
          transport: HTTPTransport(baseURL: running.url, isLocal: true),
          token: givenToken ?? AdminTokenFile.read(in: place) ?? "",
          ownToken: AdminTokenFile.read(in: place)
        )
      )
    }
    guard FileManager.default.fileExists(atPath: place.path) else {
      throw CommandFailure(
        "NO_DATA",
        what: "there is no server to speak to",
        why: "the data folder \(place.path) does not exist",
        next: "name it with --data, or start one: watershed serve --data \(folder)"
      )
    }
    return try await inProcess(body)
  }

  private func inProcess<Result>(
    _ body: (AdminConnection) async throws -> Result
  ) async throws -> Result {
    let data = try DataFolder(opening: folder, database: database)
    defer { data.close() }
    let token = try AdminTokenFile.make(in: data.url)
    let service = try await data.openService { $0.administratorToken = token }
    let outcome: Swift.Result<Result, any Error>
    do {
      outcome = .success(
        try await body(
          AdminConnection(
            transport: InProcessTransport { await service.respond(to: $0) },
            token: self.token ?? token,
            ownToken: token
          )
        )
      )
    } catch {
      outcome = .failure(error)
    }
    await service.shutdown()
    return try outcome.get()
  }
}

/// A way to the admin API, and with a user's token to the databases.
struct AdminConnection: Sendable {
  let transport: any CloudKitTransport
  var token: String
  /// What the folder of a server of this machine holds.
  var ownToken: String?

  /// Calls `noun/verb` and reads the reply.
  func call<Reply: Decodable>(
    _ path: String,
    _ body: some Encodable,
    as type: Reply.Type = Reply.self
  ) async throws -> Reply {
    try WireCoding.decode(type, from: try await call(path, try WireCoding.encode(body)))
  }

  /// Calls `noun/verb` with a body of JSON.
  @discardableResult
  func call(_ path: String, _ body: Data = Data("{}".utf8)) async throws -> Data {
    try await send(
      WebServiceRequest(
        method: "POST",
        path: "/admin/1/\(path)",
        headers: [
          "authorization": "Bearer \(token)", WebServiceName.contentType: "application/json",
        ],
        body: body
      )
    )
  }

  /// Sends any request; an error dictionary is thrown.
  func send(_ request: WebServiceRequest) async throws -> Data {
    let response = try await transport.send(request)
    guard (200..<300).contains(response.status) else {
      if let error = try? WireCoding.decode(ErrorDictionary.self, from: response.body) {
        throw error
      }
      throw CommandFailure(
        "UNEXPECTED_REPLY",
        what: "the server's reply cannot be read",
        why: "it answered with status \(response.status) and no error dictionary",
        next: "check that --server is the address of a Watershed server",
        exit: ExitCodes.unreachable
      )
    }
    return response.body
  }
}

/// A reply that says nothing.
struct NoReply: Codable, Sendable {}
