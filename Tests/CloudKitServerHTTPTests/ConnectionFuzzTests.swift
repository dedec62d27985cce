import CloudKitServer
import CloudKitServerHTTP
import Foundation
import Testing

/// Bytes on a connection that are HTTP, nearly HTTP, or random; `make fuzz` sends more.
@Suite("Fuzzed connections")
struct ConnectionFuzzTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let seed = environment["WATERSHED_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1
  /// A connection costs a hundred times as much as a request in the process.
  private static let rounds =
    environment["WATERSHED_FUZZ"].flatMap { Int($0) }.map { max($0 / 100, 100) } ?? 150

  private struct Line {
    let query: String
    private var state: UInt64

    init(seed: UInt64, query: String) {
      state = seed
      self.query = query
    }

    /// SplitMix64: the same bytes for a seed, on every platform.
    private mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var word = state
      word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
      word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
      return word ^ (word >> 31)
    }

    private mutating func pick<Value>(_ values: [Value]) -> Value {
      values[Int(next() % UInt64(values.count))]
    }

    private mutating func target() -> String {
      let place = "/database/1/\(TestCloud.container)/development"
      return pick([
        "\(place)/private/records/modify?\(query)", "\(place)/public/records/query?\(query)",
        "\(place)/private/zones/list?\(query)", "\(place)/private/changes/database", "/", "*",
        "/healthz", "/metrics", "/assets/upload/x", "/assets/download/x.y", "/events/x",
        "/webcourier/x", "/account/sign-in", "/admin/1/users/list", "/sign-in?a=%", "//", "",
        "http://127.0.0.1/healthz", "/%00", "/\u{1}", "/é", String(repeating: "/a", count: 5000),
      ])
    }

    private mutating func header() -> String {
      let name = pick([
        "Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Content-Type",
        "X-Forwarded-For", "Authorization", "Range", "Origin", "Upgrade", "Content-Encoding",
        "X-Watershed-Capabilities", "", " ", "Bad Name", "x\u{0}",
        String(repeating: "x", count: 9000),
      ])
      let value = pick([
        "127.0.0.1", "5", "0", "-1", "5, 6", "18446744073709551616", "99999999999", "1e3", "",
        "chunked", "gzip, chunked", "chunked, chunked", "identity", "close", "keep-alive",
        "100-continue", "bytes=0-", "websocket", "h2c", "null", "10.0.0.1, ,::1", "\u{7F}",
        "multipart/form-data; boundary=", "a\rb", String(repeating: "y", count: 70_000),
      ])
      return "\(name)\(pick([": ", ":", " : ", ""]))\(value)\(pick(["\r\n", "\r\n", "\n"]))"
    }

    private mutating func body() -> String {
      pick([
        "", "{}", #"{"operations":[]}"#, "5\r\n{\"a\":\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFF\r\nx",
        "-1\r\n", "0\r\nX: y\r\n\r\n", "zz\r\n", String(repeating: "[", count: 50_000),
        "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
      ])
    }

    /// Some requests in sequence, complete or not.
    mutating func bytes() -> String {
      var text = ""
      for _ in 0...(next() % 3) {
        let method = pick([
          "GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "get", "PRI", "\u{0}",
        ])
        let version = pick([
          "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9.9", "HTCPCP", "",
        ])
        text += "\(method) \(target()) \(version)\r\n"
        if next() % 4 != 0 { text += "Host: 127.0.0.1\r\n" }
        let content = body()
        if next() % 3 != 0 { text += "Content-Length: \(content.utf8.count)\r\n" }
        for _ in 0..<(next() % 4) { text += header() }
        text += "\r\n" + content
      }
      if next() % 8 == 0 { text = String(text.prefix(Int(next() % 200))) }
      return text
    }
  }

  @Test("For any bytes on a connection the server replies or closes it, and serves the next one")
  func connections() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        let query = "ckAPIToken=\(cloud.apiToken)&ckWebAuthToken=\(cloud.webAuthToken)"
        var fuzz = Line(seed: Self.seed, query: query)
        for round in 0..<Self.rounds {
          let bytes = fuzz.bytes()
          let reply = try? await RawLine.withLine(to: cloud.server.address.port) { line in
            // In two pieces, split anywhere.
            let cut = bytes.index(bytes.startIndex, offsetBy: bytes.count / 2)
            try await line.send(String(bytes[..<cut]))
            try await line.send(String(bytes[cut...]))
            line.finish()
            return try await line.readToEnd()
          }
          #expect(
            reply?.contains("HTTP/1.1 500") != true,
            "seed \(Self.seed): \(bytes.prefix(2000))"
          )
          guard round % 50 == 49 else { continue }
          let healthy = try await RawLine.withLine(to: cloud.server.address.port) { line in
            try await line.send("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            line.finish()
            return try await line.readToEnd()
          }
          #expect(healthy.hasPrefix("HTTP/1.1 200"), "seed \(Self.seed), round \(round)")
        }
      }
    }
  }
}
