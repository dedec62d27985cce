import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Headers for caches and browsers.
@Suite("Headers of replies")
struct ReplyHeaderTests {
  @Test("Caches keep only replies with their own header, and browsers guess no types")
  func caches() async throws {
    let server = try await TestServer(baseURL: "https://cloud.example.org")
    let ada = try await server.person()
    let replies = [
      await ada.send(.listZones, Data(), method: "GET"),
      await ada.send(.currentUser, Data(), in: .public, method: "GET"),
      await Person(server: server).send(.listZones, Data("{}".utf8)),
      await server.send("GET", "/nothing"),
      await server.send("POST", "/account/sign-in", body: Data("{}".utf8)),
      await server.send("GET", "/my-account"),
    ]
    for reply in replies {
      #expect(reply.headers["cache-control"] == "no-store")
      #expect(reply.headers["x-content-type-options"] == "nosniff")
      #expect(reply.headers["strict-transport-security"] == "max-age=31536000")
    }
  }

  @Test("Replies in JSON are attachments with a name of the server's, and pages are not")
  func attachments() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    for reply in [
      await ada.send(.listZones, Data(), method: "GET"), await server.send("GET", "/nothing"),
      await server.send("POST", "/account/sign-in", body: Data("{}".utf8)),
    ] {
      #expect(reply.headers["content-disposition"] == "attachment; filename=\"api.json\"")
    }
    let page = await server.send("GET", "/my-account")
    #expect(page.headers["content-disposition"] == nil)
  }

  @Test("Pages answer GET and POST alone")
  func methodsOfPages() async throws {
    let server = try await TestServer()
    for page in ["/my-account", "/sign-in", "/share/0abc", "/forgot-password"] {
      for method in ["PUT", "DELETE", "PATCH", "TRACE"] {
        #expect(await server.send(method, page).status == 400)
      }
    }
    #expect(await server.send("GET", "/my-account").status == 200)
  }

  @Test("A server without HTTPS sends no Strict-Transport-Security")
  func plain() async throws {
    let server = try await TestServer()
    let reply = await server.send("GET", "/my-account")
    #expect(reply.headers["strict-transport-security"] == nil)
  }
}
