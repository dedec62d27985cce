import AsyncHTTPClient
import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Foundation
import Logging
import NIOCore
import Synchronization
import Testing

/// The adapter alone, with a service that only returns the request.
@Suite("The HTTP adapter")
struct AdapterTests {
  @Test("Path, query, headers and body reach the service unchanged")
  func passesRequestsUnchanged() async throws {
    let seen = Mutex<WebServiceRequest?>(nil)
    try await withServer { request in
      seen.withLock { $0 = request }
      return WebServiceResponse(
        status: 201,
        headers: ["x-apple-request-uuid": "U"],
        body: request.body
      )
    } body: { address in
      var request = HTTPClientRequest(
        url: address + "/database/1/iCloud.a%2Fb/development/private/zones/list?a=%2B&b=x%20y"
      )
      request.method = .POST
      request.headers.add(name: "X-Apple-CloudKit-Request-KeyID", value: "k")
      request.body = .bytes(ByteBuffer(string: "{}"))
      let reply = try await send(request)
      #expect(reply.status == 201)
      #expect(reply.headers["x-apple-request-uuid"] == "U")
      #expect(reply.text == "{}")
    }
    let request = try #require(seen.withLock { $0 })
    #expect(request.method == "POST")
    #expect(
      request.path == "/database/1/iCloud.a%2Fb/development/private/zones/list?a=%2B&b=x%20y"
    )
    #expect(request.headers["x-apple-cloudkit-request-keyid"] == "k")
    #expect(request.headers["host"]?.hasPrefix("127.0.0.1:") == true)
    #expect(request.body == Data("{}".utf8))
  }

  @Test(
    "A body at the limit is accepted; one byte more gets the error dictionary with status 413",
    arguments: [(99, 200), (100, 200), (101, 413), (300_000, 413)]
  )
  func limitsBodies(size: Int, status: Int) async throws {
    try await withServer(bodyLimit: 100) { request in
      WebServiceResponse(status: 200, body: Data("\(request.body.count)".utf8))
    } body: { address in
      var request = HTTPClientRequest(url: address + "/x")
      request.method = .POST
      request.body = .bytes(ByteBuffer(repeating: 65, count: size))
      let reply = try await send(request)
      #expect(reply.status == status)
      if status == 200 {
        #expect(reply.text == "\(size)")
      } else {
        let error = try WireCoding.decode(ErrorDictionary.self, from: reply.body)
        #expect(error.serverErrorCode == .quotaExceeded)
        #expect(error.uuid == reply.headers["x-apple-request-uuid"])
      }
      // The same client can send further requests.
      #expect(try await send(HTTPClientRequest(url: address + "/healthz")).status == 200)
    }
  }

  @Test("A route's own limit refuses a body that the server's limit allows")
  func limitsBodiesByRoute() async throws {
    let server = try await CloudKitHTTPServer(
      logger: .quiet,
      handlers: .init(
        respond: { WebServiceResponse(status: 200, body: Data("\($0.body.count)".utf8)) },
        bodyLimit: { Route(path: $0.path).rules.body == .form ? 100 : 1000 }
      )
    ).start()
    var statuses: [Int] = []
    for (path, size) in [("/account/sign-in", 100), ("/account/sign-in", 101), ("/admin/1/x", 101)]
    {
      var request = HTTPClientRequest(url: server.address.text + path)
      request.method = .POST
      request.body = .bytes(ByteBuffer(repeating: 65, count: size))
      statuses.append(try await send(request).status)
    }
    try await server.stop()
    #expect(statuses == [200, 413, 200])
  }

  @Test(
    "A browser gets the adapter's own refusal as a page, other clients get the error dictionary"
  )
  func refusesBrowsersWithPages() async throws {
    try await withServer(bodyLimit: 100) { _ in
      WebServiceResponse(status: 200)
    } body: { address in
      for (path, accept, type) in [
        ("/my-account", "text/html,*/*;q=0.8", "text/html; charset=UTF-8"),
        ("/my-account", "*/*", "application/json; charset=UTF-8"),
        (
          "/database/1/c/development/public/records/query", "text/html",
          "application/json; charset=UTF-8"
        ),
      ] {
        var request = HTTPClientRequest(url: address + path)
        request.method = .POST
        request.headers.add(name: "accept", value: accept)
        request.body = .bytes(ByteBuffer(repeating: 65, count: 101))
        let reply = try await send(request)
        #expect(reply.status == 413)
        #expect(reply.headers["content-type"] == type, "\(path) \(accept)")
        #expect(reply.headers["x-apple-request-uuid"] != nil)
      }
    }
  }

  @Test("A large answer arrives whole, and a HEAD request gets its length without its bytes")
  func answersLargeBodies() async throws {
    let large = Data((0..<1_000_003).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    try await withServer { _ in
      WebServiceResponse(status: 200, body: large)
    } body: { address in
      let whole = try await send(HTTPClientRequest(url: address + "/asset"))
      #expect(whole.body == large)
      var head = HTTPClientRequest(url: address + "/asset")
      head.method = .HEAD
      let reply = try await send(head)
      #expect(reply.headers["content-length"] == "1000003")
      #expect(reply.body.isEmpty)
    }
  }

  @Test("A long poll blocks no other request and ends when the server stops")
  func endsLongPollsAtStop() async throws {
    let (waiting, started) = AsyncStream.makeStream(of: Void.self)
    let server = try await makeServer { request in
      guard request.path.hasPrefix("/webcourier/") else { return WebServiceResponse(status: 204) }
      started.yield()
      let (never, hold) = AsyncStream.makeStream(of: Void.self)
      for await _ in never {}
      _ = hold
      return WebServiceResponse(status: 200, body: Data("null".utf8))
    }.start()
    let address = server.address.text
    async let poll = send(HTTPClientRequest(url: address + "/webcourier/abc"))
    _ = await waiting.first { _ in true }
    #expect(try await send(HTTPClientRequest(url: address + "/other")).status == 204)
    try await server.stop()
    #expect(try await poll.text == "null")
  }

  @Test("A long poll whose client has disconnected is cancelled, so that no notification is lost")
  func cancelsAbandonedLongPolls() async throws {
    let (waiting, started) = AsyncStream.makeStream(of: Void.self)
    let (cancelled, ended) = AsyncStream.makeStream(of: Void.self)
    try await withServer { _ in
      let (never, hold) = AsyncStream.makeStream(of: Void.self)
      started.yield()
      for await _ in never {}
      _ = hold
      if Task.isCancelled { ended.yield() }
      return WebServiceResponse(status: 200, body: Data("null".utf8))
    } body: { address in
      let poll = Task { try await send(HTTPClientRequest(url: address + "/webcourier/abc")) }
      _ = await waiting.first { _ in true }
      poll.cancel()
      _ = await cancelled.first { _ in true }
    }
  }

  @Test("A request that runs when the server stops is completed first")
  func finishesRunningRequests() async throws {
    let (waiting, started) = AsyncStream.makeStream(of: Void.self)
    let (gate, open) = AsyncStream.makeStream(of: Void.self)
    let server = try await makeServer { _ in
      started.yield()
      _ = await gate.first { _ in true }
      return WebServiceResponse(status: 200, body: Data("done".utf8))
    }.start()
    let address = server.address.text
    async let reply = send(HTTPClientRequest(url: address + "/slow"))
    _ = await waiting.first { _ in true }
    async let stopped: Void = server.stop()
    open.yield()
    #expect(try await reply.text == "done")
    try await stopped
    await #expect(throws: (any Error).self) {
      try await send(HTTPClientRequest(url: address + "/healthz"))
    }
  }

  @Test("The second of two servers on one port fails with an explanation")
  func namesThePortInUse() async throws {
    try await withServer { _ in
      WebServiceResponse(status: 204)
    } body: { address in
      let port = try #require(URL(string: address)?.port)
      let second = CloudKitHTTPServer(
        configuration: .init(port: port),
        logger: .quiet,
        handlers: .init(respond: { _ in WebServiceResponse(status: 204) })
      )
      let error = await #expect(throws: HTTPServerError.self) { _ = try await second.start() }
      #expect(error == .portInUse(host: "127.0.0.1", port: port))
    }
  }

  @Test("The landing page lists the containers, escaped, and allows no script")
  func showsALandingPage() async throws {
    let page = LandingPage(containers: [
      .init(identifier: "iCloud.<b>&\"", signInURL: "/sign-in?a=1&b=2")
    ])
    let server = try await CloudKitHTTPServer(
      logger: .quiet,
      landingPage: { page },
      handlers: .init(respond: { _ in WebServiceResponse(status: 404) })
    ).start()
    let reply = try await send(HTTPClientRequest(url: server.address.text + "/"))
    try await server.stop()
    #expect(reply.headers["content-type"] == "text/html; charset=UTF-8")
    #expect(reply.headers["content-security-policy"]?.hasPrefix("default-src 'none'") == true)
    #expect(reply.text.contains("iCloud.&lt;b&gt;&amp;&quot;"))
    #expect(reply.text.contains("/sign-in?a=1&amp;b=2"))
    #expect(!reply.text.contains("<b>"))
  }

  @Test("The health endpoint replies with a small JSON object")
  func answersHealth() async throws {
    try await withServer { _ in
      WebServiceResponse(status: 404)
    } body: { address in
      let reply = try await send(HTTPClientRequest(url: address + "/healthz"))
      #expect(reply.status == 200)
      #expect(reply.text == #"{"status":"ok"}"#)
    }
  }

  private func makeServer(
    bodyLimit: Int = 60_000_000,
    respond: @escaping CloudKitHTTPServer.Respond
  ) -> CloudKitHTTPServer {
    CloudKitHTTPServer(
      configuration: .init(bodyLimit: bodyLimit),
      logger: .quiet,
      handlers: .init(respond: respond)
    )
  }

  private func withServer(
    bodyLimit: Int = 60_000_000,
    respond: @escaping CloudKitHTTPServer.Respond,
    body: (String) async throws -> Void
  ) async throws {
    let server = try await makeServer(bodyLimit: bodyLimit, respond: respond).start()
    let outcome: Result<Void, any Error>
    do {
      outcome = .success(try await body(server.address.text))
    } catch {
      outcome = .failure(error)
    }
    try await server.stop()
    try outcome.get()
  }
}
