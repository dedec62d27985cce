import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// A foreign name server can resolve its own name to this machine; a foreign page must not be able
/// to read what is typed and shown here (DNS rebinding).
@Suite("Host names of pages")
struct PageHostTests {
  /// Every page on which users type passwords or grant access.
  static let pages = [
    "/sign-in?container=iCloud.example", "/sign-up", "/reset-password?code=x", "/activate",
    "/my-account",
    "/share/x", "/delete-account",
  ]

  private func status(
    _ server: TestServer,
    _ path: String,
    host: String?,
    method: String = "GET"
  ) async -> Int {
    await server.service.respond(
      to: WebServiceRequest(
        method: method,
        path: path,
        headers: host.map { ["host": $0] } ?? [:]
      )
    ).status
  }

  @Test("A server with a name serves pages under it, under IP addresses, and under no other name")
  func named() async throws {
    let server = try await TestServer(baseURL: "https://cloud.example.org")
    for page in Self.pages {
      let own = await status(server, page, host: "cloud.example.org")
      #expect(own != 403, "\(page)")
      for host in ["Cloud.Example.org:443", "127.0.0.1:8080", "[::1]:8080", "localhost"] {
        #expect(await status(server, page, host: host) == own, "\(page) under \(host)")
      }
      for host in [
        "evil.example", "cloud.example.org.evil.example", "1.2.3.4.evil.example", "a b", "",
        "cloud.example.org@evil.example",
      ] {
        for method in ["GET", "POST"] {
          let found = await status(server, page, host: host, method: method)
          #expect(found == 403, "\(method) \(page) under \(host)")
        }
      }
    }
  }

  @Test("A server without a name serves pages under any, until names are configured")
  func unnamed() async throws {
    let server = try await TestServer(baseURL: "http://0.0.0.0:8080")
    for page in Self.pages { #expect(await status(server, page, host: "nas.local") != 403) }
    let strict = try await TestServer(allowedHosts: ["NAS.local"])
    for page in Self.pages {
      #expect(await status(strict, page, host: "nas.local:8080") != 403, "\(page)")
      #expect(await status(strict, page, host: "evil.example") == 403, "\(page)")
    }
  }

  @Test("The refusal page escapes the foreign name, and has the right link")
  func page() async throws {
    let server = try await TestServer(baseURL: "https://cloud.example.org")
    let response = await server.service.respond(
      to: WebServiceRequest(
        method: "GET",
        path: "/sign-in",
        headers: ["host": "<script>alert(1)</script>"]
      )
    )
    let text = String(decoding: response.body, as: UTF8.self)
    #expect(response.status == 403)
    #expect(!text.contains("<script>"))
    #expect(text.contains("https://cloud.example.org"))
  }

  @Test("A browser gets a page for a missing path, every other client the error dictionary")
  func nothingThere() async throws {
    let server = try await TestServer(baseURL: "https://cloud.example.org")
    for path in ["/nothing/<here>", "/share/a/b"] {
      for (accept, isPage) in [
        ("text/html,application/xhtml+xml,*/*;q=0.8", true), ("*/*", false),
        ("application/json", false),
      ] {
        let response = await server.service.respond(
          to: WebServiceRequest(method: "GET", path: path, headers: ["accept": accept])
        )
        let text = String(decoding: response.body, as: UTF8.self)
        #expect(response.status == 404, "\(path) \(accept)")
        #expect(text.contains("NOT_FOUND") != isPage, "\(path) \(accept): \(text)")
        #expect(text.contains("<!DOCTYPE html>") == isPage)
        #expect(!text.contains("<here>"))
      }
    }
    let api = await server.service.respond(
      to: WebServiceRequest(
        method: "GET",
        path: "/database/1/c/development/private/records/guess",
        headers: ["accept": "text/html"]
      )
    )
    #expect(String(decoding: api.body, as: UTF8.self).contains("NOT_FOUND"))
  }

  @Test("A browser that guesses the address of the account or of administration gets a page")
  func guesses() async throws {
    let server = try await TestServer(baseURL: "https://cloud.example.org")
    for (path, hint) in [("/account", "href=\"/my-account\""), ("/admin", "watershed")] {
      for (accept, isPage) in [("text/html", true), ("*/*", false)] {
        let response = await server.service.respond(
          to: WebServiceRequest(method: "GET", path: path, headers: ["accept": accept])
        )
        let text = String(decoding: response.body, as: UTF8.self)
        #expect((400..<500).contains(response.status), "\(path)")
        #expect(text.contains("<!DOCTYPE html>") == isPage, "\(path) \(accept)")
        #expect(text.contains(hint) == isPage, "\(path) \(accept)")
        #expect((response.headers["content-disposition"] == nil) == isPage)
      }
    }
  }

  @Test("Apps may use any host name, because their tokens are in the request")
  func apps() async throws {
    let server = try await TestServer(baseURL: "https://cloud.example.org")
    let person = try await server.person()
    let response = await server.service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: person.path(.listZones, .private),
        headers: ["host": "another.example"],
        body: Data("{}".utf8)
      )
    )
    #expect(response.status == 200)
  }

  @Test("The admin API refuses foreign host names, with any credential")
  func administration() async throws {
    let server = try await TestServer(
      baseURL: "https://cloud.example.org",
      administratorToken: "operator"
    )
    for (host, expected) in [
      ("cloud.example.org", 200), ("127.0.0.1", 200), ("evil.example", 403),
    ] {
      let response = await server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: "/admin/1/server/status",
          headers: ["host": host, "authorization": "Bearer operator"],
          body: Data("{}".utf8)
        )
      )
      #expect(response.status == expected, "\(host)")
    }
  }
}
