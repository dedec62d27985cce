import CloudKitServer
import CloudKitWebServices
import Foundation
import Synchronization
import Testing

@testable import CloudKitServerHTTP

/// Large bodies, which arrive once the credential of their request has been checked.
@Suite("Credentials before large bodies")
struct CredentialBeforeBodyTests {
  private static let size = 60_000_000

  private func head(
    _ path: String,
    length: Int? = size,
    _ more: String = ""
  ) -> String {
    let body = length.map { "Content-Length: \($0)" } ?? "Transfer-Encoding: chunked"
    return "POST \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(body)\r\n\(more)\r\n"
  }

  private func path(_ cloud: TestCloud, userToken: String? = "made-up") -> String {
    let token = userToken.map { "&ckWebAuthToken=" + WebServicePath.escape($0) } ?? ""
    return "/database/1/\(TestCloud.container)/development/private/records/modify"
      + "?ckAPIToken=\(cloud.apiToken)\(token)"
  }

  private func withCloud(_ body: (TestCloud) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in try await TestCloud.run(in: folder, body) }
  }

  @Test("A made-up credential is refused by the head of its request, before any byte of the body")
  func refusedByHead() async throws {
    try await withCloud { cloud in
      let signed = [
        "X-Apple-CloudKit-Request-KeyID: made-up",
        "X-Apple-CloudKit-Request-ISO8601Date: 2026-01-01T00:00:00Z",
        "X-Apple-CloudKit-Request-SignatureV1: MAYCAQECAQE=",
      ].map { $0 + "\r\n" }.joined()
      let requests = [
        (head(path(cloud)), 421),
        (head(path(cloud), length: Self.size, "Expect: 100-continue\r\n"), 421),
        (head(path(cloud, userToken: nil), length: Self.size, signed), 401),
        (head("/admin/1/schema/import", length: 4_000_000, "Authorization: Bearer x\r\n"), 401),
        (head(path(cloud).replacing("ckAPIToken=", with: "ckAPIToken=x")), 401),
      ]
      for (request, status) in requests {
        try await RawLine.withLine(to: cloud.server.address.port) { line in
          try await line.send(request)
          let reply = try await line.readToEnd()
          #expect(reply.hasPrefix("HTTP/1.1 \(status) "), "\(request)")
          #expect(reply.contains("connection: close\r\n"))
          #expect(reply.contains("x-apple-request-uuid: "))
        }
      }
    }
  }

  @Test("A body without a length is accepted up to the limit of anonymous callers")
  func chunked() async throws {
    try await withCloud { cloud in
      try await RawLine.withLine(to: cloud.server.address.port) { line in
        try await line.send(head(path(cloud), length: nil))
        let piece = String(repeating: " ", count: 0x8000)
        // 33 pieces of 32 KB are just over a megabyte; the end of the body never comes.
        for _ in 0..<33 { try await line.send("8000\r\n\(piece)\r\n") }
        let reply = try await line.readToEnd()
        #expect(reply.hasPrefix("HTTP/1.1 421 "))
      }
    }
  }

  @Test("A large body of a person arrives, with leave to send it and without, and so does the next")
  func admitted() async throws {
    try await withCloud { cloud in
      try await RawLine.withLine(to: cloud.server.address.port) { line in
        let body = #"{"operations":[]}"# + String(repeating: " ", count: 3_000_000)
        let own = path(cloud, userToken: cloud.webAuthToken)
        for expects in [false, true] {
          let more = expects ? "Expect: 100-continue\r\n" : ""
          try await line.send(head(own, length: body.utf8.count, more))
          if expects {
            let leave = try await line.read(through: "\r\n\r\n")
            #expect(leave == "HTTP/1.1 100 Continue\r\n\r\n")
          }
          try await line.send(body)
          let reply = try await line.read(through: "\r\n\r\n")
          #expect(reply.hasPrefix("HTTP/1.1 200 "), "\(reply)")
          _ = try await line.read(through: "}")
        }
      }
    }
  }

  @Test("A refusal of a body that has come as a whole leaves the connection open")
  func refusedWhole() async throws {
    let handlers = CloudKitHTTPServer.Handlers(
      respond: { _ in WebServiceResponse(status: 200, body: Data("ok".utf8)) },
      bodyLimit: { _ in 100 },
      uncheckedBodyLimit: { _ in 10 },
      refusalBeforeBody: { request in
        request.path == "/good" ? nil : WebServiceResponse(status: 401, body: Data("no".utf8))
      }
    )
    let server = try await CloudKitHTTPServer(logger: .quiet, handlers: handlers).start()
    try await RawLine.withLine(to: server.address.port) { line in
      for (path, answer) in [("/good", "ok"), ("/bad", "no"), ("/good", "ok")] {
        try await line.send(head(path, length: 20) + String(repeating: "x", count: 20))
        let reply = try await line.read(through: "\r\n\r\n" + answer)
        #expect(reply.hasPrefix("HTTP/1.1 \(answer == "ok" ? 200 : 401) "))
      }
    }
    try await server.stop()
  }

  /// What keeps the reader of an upload after the reply to it.
  private final class KeptUpload: Sendable {
    let source = Mutex<BodySource?>(nil)
  }

  @Test("The late end of a refused upload does not let the next body in before its check")
  func lateUpload() async throws {
    let kept = KeptUpload()
    let (checks, check) = AsyncStream.makeStream(of: Void.self)
    let (ends, end) = AsyncStream.makeStream(of: Void.self)
    let handlers = CloudKitHTTPServer.Handlers(
      respond: { _ in WebServiceResponse(status: 200, body: Data("ok".utf8)) },
      transfer: { _, body in
        kept.source.withLock { $0 = body }
        return StreamedResponse(WebServiceResponse(status: 403, body: Data("no".utf8)))
      },
      uncheckedBodyLimit: { _ in 10 },
      refusalBeforeBody: { _ in
        check.yield()
        for await _ in ends { break }
        return WebServiceResponse(status: 401, body: Data("no".utf8))
      }
    )
    let server = try await CloudKitHTTPServer(logger: .quiet, handlers: handlers).start()
    try await RawLine.withLine(to: server.address.port) { line in
      try await line.send(head("/assets/a/b", length: 3) + "abc")
      let refused = try await line.read(through: "\r\n\r\nno")
      #expect(refused.hasPrefix("HTTP/1.1 403 "))
      try await line.send(head("/next", length: 200_000))
      for await _ in checks { break }
      try await line.send(String(repeating: "x", count: 200_000))
      kept.source.withLock { $0 = nil }
      // Each event loop serves some of these, after what it was asked before.
      for _ in 0..<50 {
        try await RawLine.withLine(to: server.address.port) { other in
          try await other.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
          _ = try await other.read(through: "ok")
        }
      }
      end.yield()
      let reply = try await line.read(through: "\r\n\r\nno")
      #expect(reply.hasPrefix("HTTP/1.1 401 "))
      // After a body that was received as a whole the connection would stay open.
      #expect(reply.contains("connection: close\r\n"))
    }
    try await server.stop()
  }
}
