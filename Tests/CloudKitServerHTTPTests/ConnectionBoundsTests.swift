import AsyncHTTPClient
import CloudKitServer
import CloudKitWebServices
import Foundation
import Logging
import NIOCore
import Synchronization
import Testing

@testable import CloudKitServerHTTP

/// The limits of connections: buffers, slow bodies, unread replies, and their number.
@Suite("Limits of connections")
struct ConnectionBoundsTests {
  private static let ok = CloudKitHTTPServer.Handlers { _ in
    WebServiceResponse(status: 200, body: Data("ok".utf8))
  }

  @Test("Pages of other origins read refusals of the adapter only where they read replies")
  func originsOfRefusals() async throws {
    try await withServer(.init(bodyLimit: 10), Self.ok) { port in
      for (path, isRead) in [("/database/1/x", true), ("/admin/users", false), ("/x", false)] {
        try await RawLine.withLine(to: port) { line in
          let origin = "Origin: https://other.example\r\n"
          try await line.send(
            "POST \(path) HTTP/1.1\r\nHost: h\r\n\(origin)Content-Length: 11\r\n\r\n"
              + String(repeating: "x", count: 11)
          )
          let head = try await line.read(through: "\r\n\r\n").lowercased()
          #expect(head.hasPrefix("http/1.1 413 "))
          #expect(head.contains("access-control-allow-origin: https://other.example") == isRead)
          #expect(head.contains("access-control-allow-origin") == isRead)
        }
      }
    }
  }

  @Test("A request's headers have a limit of bytes")
  func headers() async throws {
    try await withServer(.init(), Self.ok) { port in
      for (size, isAccepted) in [(30_000, true), (34_000, false)] {
        try await RawLine.withLine(to: port) { line in
          let header = "X-Long: " + String(repeating: "x", count: size)
          try await line.send("GET /x HTTP/1.1\r\nHost: a\r\n\(header)\r\n\r\n")
          let head = try await line.read(through: "\r\n\r\n")
          #expect(head.hasPrefix("HTTP/1.1 200 ") == isAccepted)
        }
      }
    }
  }

  @Test("A header has a limited number of combining marks in a row", arguments: [128, 129])
  func marks(count: Int) async throws {
    try await withServer(.init(), Self.ok) { port in
      try await RawLine.withLine(to: port) { line in
        let header = "X-Marks: a" + String(repeating: "\u{0301}", count: count)
        try await line.send("GET /x HTTP/1.1\r\nHost: a\r\n\(header)\r\n\r\n")
        let head = try await line.read(through: "\r\n\r\n")
        #expect(head.hasPrefix(count > 128 ? "HTTP/1.1 400 " : "HTTP/1.1 200 "))
      }
    }
  }

  @Test("A body over its path's limit is refused with status 413, below the server's limit")
  func pathLimit() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        for (size, status) in [(65_536, 401), (65_537, 413), (3_000_000, 413)] {
          let reply = try await cloud.post(
            cloud.url + "/delete-account",
            Data(repeating: 65, count: size)
          )
          #expect(reply.status == status)
        }
      }
    }
  }

  @Test(
    "Bodies share the memory budget: a body without room is refused, and released bytes are reused"
  )
  func buffers() async throws {
    try await withServer(.init(bufferLimit: 1000), Self.ok) { port in
      try await RawLine.withLine(to: port) { line in
        for size in [400, 600, 400, 500, 501] {
          let body = String(repeating: "x", count: size)
          try await line.send(post("/x", length: size) + body)
          let head = try await line.read(through: "\r\n\r\n")
          #expect(head.hasPrefix(size > 500 ? "HTTP/1.1 503 " : "HTTP/1.1 200 "))
          if size > 500 {
            #expect(head.contains("Retry-After: 1\r\n") || head.contains("retry-after: 1\r\n"))
            _ = try await line.read(through: "}")
          } else {
            _ = try await line.read(through: "ok")
          }
        }
      }
    }
  }

  @Test(
    "Large heads share the memory budget of bodies until their requests end; small ones take none"
  )
  func heads() async throws {
    try await withServer(.init(bufferLimit: 30_000), Self.ok) { port in
      let large = "X-Large: \(String(repeating: "x", count: 9000))\r\n"
      func head(_ path: String, _ fields: String) -> String {
        "POST \(path) HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\(fields)\r\n"
      }
      try await RawLine.withLine(to: port) { waiting in
        // The body is missing: the head stays, beside which half of the budget has no room for another.
        try await waiting.send(head("/x", large + "Expect: 100-continue\r\n"))
        _ = try await waiting.read(through: "100 Continue\r\n\r\n")
        for (fields, status) in [(large, 503), ("", 200), ("", 200)] {
          try await RawLine.withLine(to: port) { line in
            try await line.send(head("/x", fields) + "x")
            let reply = try await line.read(through: "\r\n\r\n")
            #expect(reply.hasPrefix("HTTP/1.1 \(status) "))
          }
        }
        try await waiting.send("x")
        _ = try await waiting.read(through: "ok")
        try await waiting.send(head("/x", large) + "x")
        #expect(try await waiting.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
      }
    }
  }

  @Test("One site takes half of the buffers at most, and leaves the rest to others")
  func shares() {
    let budget = BufferBudget(limit: 100)
    #expect(budget.take(50, for: "a"))
    #expect(!budget.take(1, for: "a"))
    #expect(budget.take(50, for: "b"))
    #expect(!budget.take(1, for: "c"))
    budget.release(50, for: "a")
    #expect(budget.take(10, for: "a"))
    budget.release(10, for: "a")
    budget.release(50, for: "b")
    #expect(budget.total == 0)
  }

  @Test(
    "A body that is received too slowly ends its connection",
    arguments: ["/x", "/assets/upload/x"]
  )
  func slowBody(path: String) async throws {
    let handlers = CloudKitHTTPServer.Handlers(
      respond: { _ in WebServiceResponse(status: 200) },
      transfer: { _, body in
        try? await body { _ in }
        return StreamedResponse(WebServiceResponse(status: 204))
      }
    )
    try await withServer(.init(bodyWindow: 0), handlers) { port in
      try await RawLine.withLine(to: port) { line in
        try await line.send(post(path, length: 1000) + "begun")
        let reply = try await line.readToEnd()
        #expect(reply == "")
      }
    }
  }

  @Test("A reply that is not read is discarded")
  func unread() async throws {
    let (ends, ended) = AsyncStream.makeStream(of: Void.self)
    let handlers = CloudKitHTTPServer.Handlers(
      respond: { _ in WebServiceResponse(status: 204) },
      transfer: { _, _ in
        let piece = Data(count: 262_144)
        return StreamedResponse(
          status: 200,
          headers: [:],
          body: .stream(Int64.max) { sink in
            do {
              while true { try await sink(piece) }
            } catch {
              ended.yield()
              throw error
            }
          }
        )
      }
    )
    try await withServer(.init(readWindow: 0), handlers) { port in
      try await RawLine.withLine(to: port) { line in
        try await line.send("GET /assets/download/x HTTP/1.1\r\nHost: h\r\n\r\n")
        _ = await ends.first { _ in true }
      }
    }
  }

  @Test("A client must read a number of bytes in each window, and a reply within its time")
  func pace() {
    let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    func at(_ seconds: Int64) -> NIODeadline { start + .seconds(seconds) }
    var pace = ReaderPace(window: .seconds(60), leastBytes: 100)
    // No bytes wait.
    #expect(pace.check(waiting: 0, at: start, deadline: nil) == .idle)
    #expect(pace.wrote(waiting: 1000, at: start) == at(60))
    // Further bytes do not postpone the measurement.
    #expect(pace.wrote(waiting: 1000, at: at(50)) == at(60))
    #expect(pace.check(waiting: 1000, at: at(59), deadline: nil) == .waits(until: at(60)))
    #expect(pace.check(waiting: 900, at: at(60), deadline: nil) == .waits(until: at(120)))
    var patient = pace
    #expect(patient.check(waiting: 800, at: at(120), deadline: at(120)) == .tooSlow)
    #expect(pace.check(waiting: 801, at: at(120), deadline: nil) == .tooSlow)
    // After the client has read everything, the next piece starts a new measurement.
    pace.caughtUp()
    #expect(pace.check(waiting: 0, at: at(180), deadline: nil) == .idle)
    #expect(pace.wrote(waiting: 50, at: at(200)) == at(260))
  }

  @Test(
    "Waiting replies share the memory budget: a reply without room is refused with a retry time"
  )
  func replyRoom() async throws {
    // More than the socket buffers of both sides.
    let large = Data(repeating: UInt8(ascii: "x"), count: 30_000_000) + Data("ok".utf8)
    let handlers = CloudKitHTTPServer.Handlers { request in
      WebServiceResponse(
        status: 200,
        body: request.path == "/large" ? large : Data("short ok".utf8)
      )
    }
    func get(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n" }
    try await withServer(.init(replyBufferLimit: 100_000_000), handlers) { port in
      try await RawLine.withLine(to: port) { slow in
        try await slow.send(get("/large"))
        let head = try await slow.read(through: "\r\n\r\n")
        #expect(head.hasPrefix("HTTP/1.1 200 "))
        try await RawLine.withLine(to: port) { other in
          try await other.send(get("/large"))
          let refusal = try await other.read(through: "}")
          #expect(refusal.hasPrefix("HTTP/1.1 503 "))
          #expect(refusal.contains("TRY_AGAIN_LATER"))
          try await other.send(get("/short"))
          let short = try await other.read(through: "short ok")
          #expect(short.hasPrefix("HTTP/1.1 200 "))
        }
      }
      // The room is released when the first client has disconnected.
      var status = "HTTP/1.1 503 "
      while status == "HTTP/1.1 503 " {
        status = try await RawLine.withLine(to: port) { line in
          try await line.send(get("/large"))
          return String(try await line.read(through: "\r\n").prefix(13))
        }
      }
      #expect(status == "HTTP/1.1 200 ")
    }
  }

  @Test("A read whose client has disconnected is cancelled")
  func leftClient() async throws {
    let path = "/database/1/c/production/public/records/query"
    let (ends, ended) = AsyncStream.makeStream(of: Bool.self)
    let (begins, begun) = AsyncStream.makeStream(of: Void.self)
    let handlers = CloudKitHTTPServer.Handlers { _ in
      let (never, continuation) = AsyncStream.makeStream(of: Void.self)
      begun.yield()
      // Ends only with the task's cancellation.
      for await _ in never {}
      continuation.finish()
      ended.yield(Task.isCancelled)
      return WebServiceResponse(status: 200)
    }
    try await withServer(.init(), handlers) { port in
      try await RawLine.withLine(to: port) { line in
        try await line.send(post(path, length: 2) + "{}")
        _ = await begins.first { _ in true }
      }
      #expect(await ends.first { _ in true } == true)
    }
    // A write is completed.
    #expect(Route(path: path).isRead)
    #expect(!Route(path: "/database/1/c/production/public/records/modify").isRead)
  }

  @Test("Pipelined requests are handled as fast as the client reads, and not buffered in memory")
  func pipelined() async throws {
    let answered = Mutex(0)
    let body = Data(repeating: UInt8(ascii: "x"), count: 70_000) + Data("ok".utf8)
    let handlers = CloudKitHTTPServer.Handlers(
      respond: { _ in
        answered.withLock { $0 += 1 }
        return WebServiceResponse(status: 200, body: body)
      }
    )
    let requests = 400
    // The server's socket buffer is a few megabytes, the client's a fixed part of one; all replies are 28.
    let outstanding = 250
    try await withServer(.init(), handlers) { port in
      try await RawLine.withLine(to: port) { line in
        try await line.send(
          String(repeating: "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", count: requests)
        )
        for read in 1...requests {
          let answer = try await line.read(through: "xok")
          #expect(answer.contains("200 OK"))
          #expect(answered.withLock { $0 } - read <= outstanding)
        }
      }
    }
  }

  @Test("The number of connections is limited by the configuration")
  func connections() async throws {
    try await withServer(.init(connectionLimit: 1), Self.ok) { port in
      try await RawLine.withLine(to: port) { first in
        try await first.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
        _ = try await first.read(through: "ok")
        try await RawLine.withLine(to: port) { second in
          let all = try await second.readToEnd()
          #expect(all == "")
        }
      }
      // The server may not have seen the end of the first connection yet.
      var reply = ""
      while reply.isEmpty {
        reply =
          (try? await RawLine.withLine(to: port) { third in
            try await third.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
            return try await third.read(through: "ok")
          }) ?? ""
      }
      #expect(reply.hasPrefix("HTTP/1.1 200 "))
    }
  }

  @Test("A network's connections are limited, except those of trusted proxies and this machine")
  func networks() throws {
    var configuration = CloudKitHTTPServer.Configuration(
      connectionLimit: 10,
      connectionsPerNetwork: 2
    )
    configuration.trustedProxies = try #require(TrustedProxies(["10.0.0.1"]))
    var counts = ConnectionCounts(configuration)
    let peers = [
      "2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.1", "10.0.0.1", "10.0.0.1", "10.0.0.1",
      "127.0.0.1", "127.0.0.1", "127.0.0.1",
    ]
    var admitted = peers.map { counts.admit($0) }
    #expect(admitted == [true, true, false] + Array(repeating: true, count: 7))
    counts.end("2001:db8::1")
    admitted = ["2001:db8::3", "192.0.2.1", "127.0.0.1"].map { counts.admit($0) }
    #expect(admitted == [true, true, false])
  }

  @Test("The networks of one site have half of the connections together")
  func sites() {
    var counts = ConnectionCounts(
      CloudKitHTTPServer.Configuration(connectionLimit: 6, connectionsPerNetwork: 2)
    )
    let peers = (1...4).map { "2001:db8:0:\($0)::1" } + ["2001:db8:1::1", "192.0.2.1"]
    var admitted = peers.map { counts.admit($0) }
    #expect(admitted == [true, true, true, false, true, true])
    counts.end("2001:db8:0:1::1")
    admitted = ["2001:db8:0:4::1", "192.0.2.2"].map { counts.admit($0) }
    #expect(admitted == [true, true])
    admitted = ["192.0.2.3"].map { counts.admit($0) }
    #expect(admitted == [false])
  }

  @Test("A HEAD request takes no notification from a long poll")
  func headOfPoll() async throws {
    let handlers = CloudKitHTTPServer.Handlers { request in
      WebServiceResponse(status: request.method == "HEAD" ? 400 : 200)
    }
    try await withServer(.init(), handlers) { port in
      try await RawLine.withLine(to: port) { line in
        try await line.send("HEAD /webcourier/x HTTP/1.1\r\nHost: h\r\n\r\n")
        let head = try await line.read(through: "\r\n\r\n")
        #expect(head.hasPrefix("HTTP/1.1 400 "))
      }
    }
  }

  private func post(_ path: String, length: Int) -> String {
    "POST \(path) HTTP/1.1\r\nHost: h\r\nContent-Length: \(length)\r\n\r\n"
  }
}
