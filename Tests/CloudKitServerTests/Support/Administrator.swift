import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// The admin API for tests.
struct Administrator {
  var server: TestServer
  var token: String
  var host: String?

  func send(_ path: String, _ body: String = "{}") async -> WebServiceResponse {
    var headers = ["authorization": "Bearer \(token)"]
    if let host { headers["host"] = host }
    return await server.service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: "/admin/1/\(path)",
        headers: headers,
        body: Data(body.utf8)
      )
    )
  }

  func call(_ path: String, _ body: String = "{}") async throws -> [String: Any] {
    let response = await send(path, body)
    guard response.status == 200 else {
      throw try WireCoding.decode(ErrorDictionary.self, from: response.body)
    }
    return try #require(
      try JSONSerialization.jsonObject(with: response.body) as? [String: Any]
    )
  }
}
