import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServerHTTP

/// What a connection's requests ask of the connection itself, and what follows the last of them.
@Suite("Ends of connections")
struct ConnectionEndTests {
  private static let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n"

  @Test(
    "Bytes after a request for another protocol are not kept: the reply ends its connection",
    arguments: [
      "GET /x HTTP/1.1\r\nHost: h\r\n\(upgrade)\r\n",
      "GET /x HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\n\r\n",
      "POST /x HTTP/1.1\r\nHost: h\r\n\(upgrade)Content-Length: 2\r\n\r\nab",
      "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    ]
  )
  func following(request: String) async throws {
    try await withLine { line in
      try await line.send(request)
      let reply = try await line.read(through: "\r\n\r\nok")
      #expect(reply.hasPrefix("HTTP/1.1 200 "))
      #expect(reply.contains("connection: close\r\n"))
      #expect(try await line.readToEnd() == "")
    }
  }

  @Test("Nor are they kept where the request was refused before its body")
  func refused() async throws {
    try await withLine(bodyLimit: 10) { line in
      let length = "Expect: 100-continue\r\nContent-Length: 11\r\n\r\n"
      try await line.send("POST /x HTTP/1.1\r\nHost: h\r\n\(Self.upgrade)\(length)")
      let reply = try await line.read(through: "}")
      #expect(reply.hasPrefix("HTTP/1.1 413 "))
      #expect(reply.contains("connection: close\r\n"))
      try await line.send("0123456789a")
      #expect(try await line.readToEnd() == "")
    }
  }

  @Test(
    "Only a client of HTTP/1.1 that expects 100-continue gets it",
    arguments: [
      ("1.1", "100-continue", true), ("1.1", "100-Continue", true), ("1.1", "anything", false),
      ("1.0", "100-continue", false),
    ]
  )
  func expectations(version: String, expectation: String, isSent: Bool) async throws {
    try await withLine { line in
      let head = "POST /x HTTP/\(version)\r\nHost: h\r\nContent-Length: 1\r\n"
      try await line.send(head + "Expect: \(expectation)\r\n\r\n" + (isSent ? "" : "x"))
      let first = try await line.read(through: "\r\n\r\n")
      #expect(first.hasPrefix("HTTP/\(version) \(isSent ? 100 : 200) "))
    }
  }

  @Test("A length that no number holds is over the limit")
  func length() async throws {
    try await withLine { line in
      try await line.send(
        "POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
          + "Content-Length: 9223372036854775808\r\n\r\n"
      )
      #expect(try await line.read(through: "\r\n").hasPrefix("HTTP/1.1 413 "))
    }
  }

  @Test(
    "A request of HTTP/1.1 names one host",
    arguments: [
      ("1.1", "", 400), ("1.1", "Host: a\r\nHost: a\r\n", 400), ("1.1", "Host: a\r\n", 200),
      ("1.0", "", 200), ("1.0", "Host: a\r\nHost: b\r\n", 400),
    ]
  )
  func hosts(version: String, header: String, status: Int) async throws {
    try await withLine { line in
      try await line.send("GET /x HTTP/\(version)\r\n\(header)\r\n")
      let reply = try await line.read(through: "\r\n")
      #expect(reply.hasPrefix("HTTP/\(version) \(status) "))
    }
  }

  @Test(
    "A target may be a whole address, whose host replaces the header's",
    arguments: [
      ("http://a.example:81/x?y=1", "a.example:81 /x?y=1"), ("HTTPS://a.example", "a.example /"),
      ("http://a.example?y=1", "a.example /?y=1"), ("/http://a.example/", "h /http://a.example/"),
    ]
  )
  func addresses(target: String, expected: String) async throws {
    try await withLine { line in
      try await line.send("POST \(target) HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
      let reply = try await line.readToEnd()
      #expect(reply.contains("x-asked: \(expected)\r\n"))
    }
  }

  private func withLine(
    bodyLimit: Int = 1000,
    _ body: (inout RawLine) async throws -> Void
  ) async throws {
    try await RawLine.withServer(
      bodyLimit: bodyLimit,
      handlers: .init { request in
        let asked = "\(request.headers["host"] ?? "") \(request.path)"
        return WebServiceResponse(status: 200, headers: ["x-asked": asked], body: Data("ok".utf8))
      },
      body
    )
  }
}
