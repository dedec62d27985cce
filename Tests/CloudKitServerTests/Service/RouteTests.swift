import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Routes")
struct RouteTests {
  static let database = "/database/1/iCloud.example/development/private"

  @Test("Every documented endpoint is routed by its path", arguments: Endpoint.allCases)
  func endpoints(endpoint: Endpoint) throws {
    guard case .api(let path, let found) = Route(path: "\(Self.database)/\(endpoint.rawValue)?a=b")
    else { throw Unrouted() }
    #expect(found == endpoint)
    #expect(path.database == .private)
    #expect(path.container == "iCloud.example")
  }

  struct Unrouted: Error {}

  @Test("Every section is routed by its first part", arguments: Route.Section.allCases)
  func sections(section: Route.Section) {
    for path in ["/\(section.rawValue)", "//\(section.rawValue)/", "/\(section.rawValue)?x=/y"] {
      #expect(Route(path: path) == .section(section))
    }
  }

  @Test(
    "An unknown path has no route, and shares one metrics label",
    arguments: ["/nothing", "/database/1", "/database/1/c/development/private/records/guess"]
  )
  func unknown(path: String) {
    #expect([.unknown, .unknownEndpoint].contains(Route(path: path)))
    #expect(Route(path: path).rules.label == "other")
  }

  @Test("A body at its route's limit is read; one byte more is refused before any work")
  func bodyLimits() async throws {
    let server = try await TestServer()
    for path in [
      "/account/sign-in", "/delete-account", "/admin/1/users/list",
      "\(Self.database)/records/query",
    ] {
      let limit = server.service.bodyLimit(of: WebServiceRequest(method: "POST", path: path))
      let atLimit = await server.send("POST", path, body: Data(count: limit))
      #expect(!atLimit.text.contains("larger than"), "\(path)")
      let above = await server.send("POST", path, body: Data(count: limit + 1))
      #expect(above.status == 400, "\(path)")
      #expect(above.text.contains("request is larger than \(limit) bytes"), "\(path)")
    }
  }
}

extension WebServiceResponse {
  fileprivate var text: String { String(decoding: body, as: UTF8.self) }
}
