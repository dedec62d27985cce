import AsyncHTTPClient
import Foundation
import Logging
import NIOCore
import NIOFoundationCompat

/// A reply received over the socket.
struct HTTPReply: Sendable {
  var status: Int
  /// The headers by lower-case name.
  var headers: [String: String]
  var body: Data

  var text: String { String(decoding: body, as: UTF8.self) }
}

/// The client of all tests; a refused connection is a result, so it is not retried.
private let client: HTTPClient = {
  var configuration = HTTPClient.Configuration.singletonConfiguration
  configuration.connectionPool.retryConnectionEstablishment = false
  return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
}()

/// Sends a request with the client of all tests.
@discardableResult
func send(_ request: HTTPClientRequest) async throws -> HTTPReply {
  let response = try await client.execute(request, timeout: .minutes(10))
  var headers: [String: String] = [:]
  for (name, value) in response.headers { headers[name.lowercased()] = value }
  let body = try await response.body.collect(upTo: 100_000_000)
  return HTTPReply(status: Int(response.status.code), headers: headers, body: Data(buffer: body))
}

extension Logger {
  /// Tests print findings, not a server's log.
  static var quiet: Logger {
    Logger(label: "quiet") { _ in SwiftLogNoOpLogHandler() }
  }
}
