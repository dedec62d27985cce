import AsyncHTTPClient
import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Foundation
import Testing

/// Access to pages, metrics and the administration, by host name, proxy and listener.
@Suite("Exposure of pages and the administration")
struct ExposedPagesTests {
  private static let proxied = CloudKitHTTPServer.Configuration(
    trustedProxies: TrustedProxies(["127.0.0.1"]) ?? .none
  )

  @Test(
    "Metrics, containers and links with tokens are only shown to programs on this machine",
    arguments: [
      ("Host: 127.0.0.1:1\r\n", true), ("Host: localhost\r\n", true),
      ("Host: 127.0.0.1\r\nX-Forwarded-For: 8.8.8.8\r\n", false),
      ("Host: 127.0.0.1\r\nX-Forwarded-For: 127.0.0.1\r\n", false),
      ("Host: 127.0.0.1\r\nForwarded: for=8.8.8.8\r\n", false),
      ("Host: rebound.example\r\n", false), ("Host: cloud.example.org\r\n", false),
    ]
  )
  func exposure(headers: String, isShown: Bool) async throws {
    let page = LandingPage(containers: [
      .init(identifier: "iCloud.tenant", signInURL: "/sign-in?ckAPIToken=SECRET")
    ])
    // A proxy without a header is known by its address, and by the server's public one.
    var named = CloudKitHTTPServer.Configuration()
    named.hasPublicAddress = true
    for (configuration, isDirect) in [(Self.proxied, false), (named, false), (.init(), true)] {
      let isShown = isShown && isDirect
      let handlers = CloudKitHTTPServer.Handlers { _ in WebServiceResponse(status: 404) }
      try await withServer(configuration, handlers, page: page) { port in
        try await RawLine.withLine(to: port) { line in
          let end = "Connection: close\r\n\r\n"
          try await line.send("GET / HTTP/1.1\r\n\(headers)\(end)")
          let root = try await line.readToEnd()
          #expect(root.hasPrefix("HTTP/1.1 200 "))
          #expect(root.contains("iCloud.tenant") == isShown)
          #expect(root.contains("SECRET") == isShown)
        }
        try await RawLine.withLine(to: port) { line in
          try await line.send("GET /metrics HTTP/1.1\r\n\(headers)Connection: close\r\n\r\n")
          let metrics = try await line.readToEnd()
          #expect(metrics.hasPrefix(isShown ? "HTTP/1.1 200 " : "HTTP/1.1 404 "))
        }
      }
    }
  }

  @Test("With a listener of their own, administration and metrics are not on the public one")
  func administration() async throws {
    let (addresses, found) = AsyncStream.makeStream(of: ListeningAddress.self)
    let server = try await CloudKitHTTPServer(
      configuration: .init(administration: AdministrationListener(host: "127.0.0.1", port: 0)),
      logger: .quiet,
      onAdministration: { found.yield($0) },
      handlers: .init { WebServiceResponse(status: 200, body: Data($0.path.utf8)) }
    ).start()
    let own = try #require(await addresses.first { _ in true })
    for (port, expected) in [(server.address.port, [404, 404, 200]), (own.port, [200, 200, 200])] {
      var statuses: [Int] = []
      for path in ["/admin/1/server/status", "/metrics", "/database/1/c/production/public/x"] {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
        // The administration listener does not check the caller's address.
        request.headers.add(name: "x-forwarded-for", value: "192.0.2.1")
        statuses.append(try await send(request).status)
      }
      #expect(statuses == expected)
    }
    try await server.stop()
  }

  @Test("A listening address is parsed, and any other text is refused")
  func administrationAddresses() {
    #expect(
      AdministrationListener("127.0.0.1:8081")
        == AdministrationListener(host: "127.0.0.1", port: 8081)
    )
    #expect(AdministrationListener("[::1]:0") == AdministrationListener(host: "::1", port: 0))
    for text in ["", "8081", ":8081", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80"] {
      #expect(AdministrationListener(text) == nil)
    }
  }

  @Test("The page at / is served only under the server's own names")
  func rootHost() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(
        in: folder,
        adjust: { $0.allowedHosts = ["cloud.example.org"] }
      ) { cloud in
        for (host, status) in [("cloud.example.org", 200), ("evil.example", 403)] {
          var request = HTTPClientRequest(url: cloud.url + "/")
          request.headers.replaceOrAdd(name: "host", value: host)
          let reply = try await send(request)
          #expect(reply.status == status)
          #expect(!reply.text.contains(TestCloud.container))
        }
      }
    }
  }
}
