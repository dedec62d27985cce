import AsyncHTTPClient
import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Foundation
import Logging
import NIOCore
import Testing

/// Connections byte by byte, as various clients use them.
@Suite("Connections")
struct ConnectionTests {
  @Test("Pipelined requests get their replies in order")
  func pipelining() async throws {
    try await withLine(
      handlers: .init { WebServiceResponse(status: 200, body: Data($0.path.utf8)) }
    ) {
      try await $0.send(get("/a") + get("/b") + get("/c"))
      for path in ["/a", "/b", "/c"] {
        let reply = try await $0.read(through: path)
        #expect(reply.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(reply.contains("content-length: 2\r\n"))
        #expect(reply.contains("date: "))
      }
    }
  }

  @Test(
    "The connection is closed after a reply if the client asks for it, or uses HTTP/1.0",
    arguments: [
      "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
      "GET /x HTTP/1.0\r\nHost: h\r\n\r\n",
    ]
  )
  func closing(request: String) async throws {
    try await withLine(
      handlers: .init { _ in WebServiceResponse(status: 200, body: Data("x".utf8)) }
    ) {
      try await $0.send(request)
      let reply = try await $0.readToEnd()
      #expect(reply.contains("connection: close\r\n"))
      #expect(reply.hasSuffix("\r\n\r\nx"))
    }
  }

  @Test("A client that closes its sending side can read its reply")
  func halfClosed() async throws {
    try await withLine(
      handlers: .init { _ in WebServiceResponse(status: 200, body: Data("x".utf8)) }
    ) {
      try await $0.send(get("/x"))
      $0.finish()
      let reply = try await $0.readToEnd()
      #expect(reply.hasSuffix("\r\n\r\nx"))
    }
  }

  @Test("Invalid HTTP is refused, and the connection closed")
  func nonsense() async throws {
    try await withLine(handlers: .init { _ in WebServiceResponse(status: 200) }) {
      try await $0.send("\u{16}\u{3}\u{1} no HTTP\r\n\r\n")
      let reply = try await $0.readToEnd()
      #expect(reply.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
    }
  }

  @Test("A client with Expect: 100-continue gets 100, or the refusal instead")
  func leave() async throws {
    let echo = CloudKitHTTPServer.Handlers { WebServiceResponse(status: 200, body: $0.body) }
    try await withLine(bodyLimit: 10, handlers: echo) {
      try await $0.send(post("/x", length: 10, "Expect: 100-continue\r\n"))
      let leave = try await $0.read(through: "\r\n\r\n")
      #expect(leave == "HTTP/1.1 100 Continue\r\n\r\n")
      try await $0.send("0123456789")
      let reply = try await $0.read(through: "0123456789")
      #expect(reply.hasPrefix("HTTP/1.1 200 OK\r\n"))
      try await $0.send(post("/x", length: 11, "Expect: 100-continue\r\n"))
      let refusal = try await $0.readToEnd()
      #expect(refusal.hasPrefix("HTTP/1.1 413 "))
      #expect(refusal.contains("QUOTA_EXCEEDED"))
    }
  }

  @Test("A header with text from a request stays one header")
  func splitting() async throws {
    let handlers = CloudKitHTTPServer.Handlers { _ in
      WebServiceResponse(status: 204, headers: ["x-echo": "a\r\nset-cookie: b"])
    }
    try await withLine(handlers: handlers) {
      try await $0.send(get("/x"))
      let head = try await $0.read(through: "\r\n\r\n")
      #expect(head.contains("x-echo: a  set-cookie: b\r\n"))
    }
  }

  @Test("An idle connection is closed")
  func idleness() async throws {
    try await withLine(idleSeconds: 0, handlers: .init { _ in WebServiceResponse(status: 204) }) {
      let all = try await $0.readToEnd()
      #expect(all == "")
    }
  }

  @Test("The body of a refused upload is read, and the next request is served")
  func refusedUpload() async throws {
    let handlers = CloudKitHTTPServer.Handlers(
      respond: { _ in WebServiceResponse(status: 204) },
      transfer: { _, _ in StreamedResponse(WebServiceResponse(status: 403, body: Data("no".utf8))) }
    )
    try await withLine(handlers: handlers) {
      let body = String(repeating: "x", count: 1_000_000)
      try await $0.send(post("/assets/upload/x", length: body.count) + body + get("/next"))
      let refusal = try await $0.read(through: "no")
      #expect(refusal.hasPrefix("HTTP/1.1 403 "))
      let next = try await $0.read(through: "\r\n\r\n")
      #expect(next.hasPrefix("HTTP/1.1 204 "))
    }
    try await withLine(bodyLimit: 1000, handlers: handlers) {
      try await $0.send(post("/assets/upload/x", length: 1_000_000))
      try await $0.send(String(repeating: "x", count: 300_000))
      let reply = try await $0.readToEnd()
      #expect(reply.hasPrefix("HTTP/1.1 403 "))
      #expect(reply.contains("connection: close\r\n"))
    }
  }

  @Test(
    "A file that cannot be read completely closes the connection, so that clients detect it"
  )
  func brokenDownload() async throws {
    struct Lost: Error {}
    let handlers = CloudKitHTTPServer.Handlers(
      respond: { _ in WebServiceResponse(status: 204) },
      transfer: { _, _ in
        StreamedResponse(
          status: 200,
          headers: [:],
          body: .stream(10) { sink in
            try await sink(Data("01234".utf8))
            throw Lost()
          }
        )
      }
    )
    try await withLine(handlers: handlers) {
      try await $0.send(get("/assets/download/x"))
      let reply = try await $0.readToEnd()
      #expect(reply.contains("content-length: 10\r\n"))
      #expect(reply.hasSuffix("\r\n\r\n01234"))
    }
  }

  @Test("An upload whose client disconnects ends for its reader")
  func abandonedUpload() async throws {
    let (ends, ended) = AsyncStream.makeStream(of: Bool.self)
    let handlers = CloudKitHTTPServer.Handlers(
      respond: { _ in WebServiceResponse(status: 204) },
      transfer: { _, body in
        do {
          try await body { _ in }
          ended.yield(true)
        } catch {
          ended.yield(false)
        }
        return StreamedResponse(WebServiceResponse(status: 204))
      }
    )
    try await withLine(handlers: handlers) {
      try await $0.send(post("/assets/upload/x", length: 1000) + "begun")
    }
    #expect(await ends.first { _ in true } == false)
  }

  @Test("An event stream on a connection that has served requests ends with the server")
  func streamAfterRequests() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        let device = try await cloud.call("tokens/create", "{}")
        let url = try #require(device.text("webcourierURL")).replacing(
          "/webcourier/",
          with: "/events/"
        )
        let path = try #require(URL(string: url)).path
        try await RawLine.withLine(to: cloud.server.address.port) { line in
          try await line.send(get("/healthz") + get(path))
          let health = try await line.read(through: #"{"status":"ok"}"#)
          #expect(health.hasPrefix("HTTP/1.1 200 "))
          let head = try await line.read(through: "\r\n\r\n")
          #expect(head.contains("content-type: text/event-stream\r\n"))
          let greeting = try await line.read(through: ": listening\n")
          #expect(greeting.contains("retry: 1000"))
          try await cloud.server.stop()
          let rest = try await line.readToEnd()
          #expect(rest.hasSuffix("0\r\n\r\n"))
        }
      }
    }
  }

  @Test("Dates in headers have the standard's format")
  func dates() async throws {
    try await withLine(handlers: .init { _ in WebServiceResponse(status: 204) }) {
      try await $0.send(get("/x"))
      let head = try await $0.read(through: "\r\n\r\n")
      let line = try #require(head.split(separator: "\r\n").first { $0.hasPrefix("date: ") })
      let format = DateFormatter()
      format.locale = Locale(identifier: "en_US_POSIX")
      format.timeZone = TimeZone(identifier: "GMT")
      format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
      let date = try #require(format.date(from: String(line.dropFirst(6))))
      #expect(abs(date.timeIntervalSinceNow) < 3600)
    }
  }

  private func get(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n" }

  private func post(_ path: String, length: Int, _ more: String = "") -> String {
    "POST \(path) HTTP/1.1\r\nHost: h\r\nContent-Length: \(length)\r\n\(more)\r\n"
  }

  private func withLine(
    bodyLimit: Int = 60_000_000,
    idleSeconds: Int64 = 120,
    handlers: CloudKitHTTPServer.Handlers,
    _ body: (inout RawLine) async throws -> Void
  ) async throws {
    try await RawLine.withServer(
      bodyLimit: bodyLimit,
      idleSeconds: idleSeconds,
      handlers: handlers,
      body
    )
  }
}
