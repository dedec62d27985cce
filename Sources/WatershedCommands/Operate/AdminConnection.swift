import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation
import OpenCloudKit

/// A connection to the admin API and, with a user token, to the databases.
struct AdminConnection: Sendable {
  let transport: any CloudKitTransport
  var token: String
  /// The token in the data folder of a server on this machine.
  var ownToken: String?
  /// The server, for the tokens that are saved for it.
  var server: URL?
  /// The process of a running server on this machine.
  var process: Int32?

  /// Whether a server answers; otherwise this process reads the data of a stopped one.
  var isRunning: Bool { !(transport is InProcessTransport) }

  /// Calls an endpoint and reads the reply.
  func call<Reply: Decodable>(
    _ endpoint: AdminEndpoint,
    _ body: some Encodable,
    as type: Reply.Type = Reply.self
  ) async throws -> Reply {
    try WireCoding.decode(type, from: try await call(endpoint, try WireCoding.encode(body)))
  }

  /// Calls an endpoint with a body of JSON.
  @discardableResult
  func call(
    _ endpoint: AdminEndpoint,
    _ body: Data = Data("{}".utf8)
  ) async throws -> Data {
    guard !token.isEmpty || endpoint == .session(.start) else {
      throw CommandFailure(
        "NO_TOKEN",
        what: "nothing was sent to the server",
        why: "its admin API takes an administrator's token, and none was given or saved",
        next: "watershed login NAME --server URL, or give --token",
        exit: ExitCodes.notAuthorised
      )
    }
    return try await send(request(endpoint, body))
  }

  /// The request of a call.
  func request(_ endpoint: AdminEndpoint, _ body: Data = Data()) -> WebServiceRequest {
    WebServiceRequest(
      method: "POST",
      path: endpoint.path,
      headers: [
        "authorization": "Bearer \(token)", WebServiceName.contentType: "application/json",
      ],
      body: body
    )
  }

  /// Sends any request; throws an error dictionary.
  func send(_ request: WebServiceRequest) async throws -> Data {
    let response = try await transport.send(request)
    try check(response)
    return response.body
  }

  /// Throws the error of a reply.
  func check(_ response: WebServiceResponse) throws {
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
  }
}

/// An empty reply.
struct NoReply: Codable, Sendable {}
