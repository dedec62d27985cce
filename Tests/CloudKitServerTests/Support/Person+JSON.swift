import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Requests whose exact keys matter: bodies and replies are JSON.
extension Person {
  /// The reply to a request; an error is a reply, too.
  func json(
    _ endpoint: Endpoint,
    _ body: String,
    in scope: DatabaseScope = .private
  ) async throws -> [String: Any] {
    let response = await send(endpoint, Data(body.utf8), in: scope)
    return try #require(try JSONSerialization.jsonObject(with: response.body) as? [String: Any])
  }

  /// The items under a key of the reply.
  func items(
    _ endpoint: Endpoint,
    _ body: String,
    in scope: DatabaseScope = .private,
    key: String
  ) async throws -> [[String: Any]] {
    let reply = try await json(endpoint, body, in: scope)
    return try #require(reply[key] as? [[String: Any]], "\(reply)")
  }
}
