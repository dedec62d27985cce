import AsyncHTTPClient
import CloudKitServer
import CloudKitWebServices
import Foundation
import Logging
import NIOCore
import Synchronization
import Testing

@testable import CloudKitServerHTTP

@Suite("Operating the server")
struct OperatingTests {
  private func get(_ url: String, headers: [String: String] = [:]) async throws -> HTTPReply {
    var request = HTTPClientRequest(url: url)
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    return try await send(request)
  }

  @Test("Health, readiness and metrics are served, and the metrics count requests by endpoint")
  func watching() async throws {
    try await withCloud { cloud in
      #expect(try await get(cloud.url + "/health").status == 200)
      #expect(try await get(cloud.url + "/ready").text == #"{"status":"ready"}"#)
      _ = try await cloud.call("zones/list", "{}")
      _ = try await get(cloud.url + "/some/path/\(UUID())")
      let text = try await get(cloud.url + "/metrics").text
      #expect(text.contains(#"watershed_requests_total{endpoint="zones/list",status="200"} 1"#))
      #expect(text.contains(#"watershed_requests_total{endpoint="other",status="404"} 1"#))
      #expect(text.contains("watershed_request_duration_seconds_bucket"))
      #expect(text.contains("# TYPE watershed_requests_in_progress gauge"))
      #expect(!text.contains("some/path"))
    }
  }

  @Test("Logs have no tokens, no capabilities and no codes")
  func redaction() {
    let paths = [
      "/database/1/c/development/private/records/query?ckAPIToken=SECRET&ckWebAuthToken=SECRET",
      "/assets/upload/SECRET", "/assets/download/SECRET.SECRET?x=SECRET", "/webcourier/SECRET",
      "/sign-up?invitation=SECRET", "/reset-password?code=SECRET", "/share/SECRET",
      "/sign-in?ckAPIToken=SECRET&container=c&request=SECRET",
      "/sign-in/return?code=SECRET&state=SECRET", "/zones?\u{0301}ckWebAuthToken=SECRET",
    ]
    for path in paths {
      let text = RedactedPath.text(path)
      #expect(!text.contains("SECRET"))
      let first = path.unicodeScalars.dropFirst().prefix { $0 != "/" && $0 != "?" }
      #expect(text.hasPrefix("/" + String(first)))
    }
    #expect(RedactedPath.text("/a/b?container=c&ckjsVersion=2") == "/a/b?container=c&ckjsVersion=2")
  }

  @Test("A line of the JSON log is one object, with the request's ID")
  func jsonLogs() throws {
    let lines = Mutex<[Data]>([])
    let logger = Logger(label: "test") { label in
      JSONLogHandler(label: label) { line in lines.withLock { $0.append(line) } }
    }
    logger.info("request", metadata: ["status": .stringConvertible(200), "requestID": "x\n\"y"])
    let line = try #require(lines.withLock { $0.first })
    #expect(line.filter { $0 == 10 }.count == 1)
    let object = try #require(try JSONSerialization.jsonObject(with: line) as? [String: Any])
    #expect(object["message"] as? String == "request")
    #expect(object["status"] as? Int == 200)
    #expect(object["requestID"] as? String == "x\n\"y")
    #expect(object["level"] as? String == "info")
    // The time of day without the date would be ambiguous.
    let time = try #require(object["time"] as? String)
    let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    #expect(abs(try style.parse(time).timeIntervalSinceNow) < 86_400, "\(time)")
  }

  @Test(
    "The client's address is the last one that a trusted proxy has seen",
    arguments: [
      ("203.0.113.9", "1.2.3.4", "203.0.113.9"), ("10.1.2.3", "1.2.3.4", "1.2.3.4"),
      ("10.1.2.3", "6.6.6.6, 1.2.3.4", "1.2.3.4"), ("10.1.2.3", "1.2.3.4, 10.9.9.9", "1.2.3.4"),
      ("::ffff:10.1.2.3", "1.2.3.4", "1.2.3.4"), ("fd00::1", "2001:db8::1", "2001:db8::1"),
      ("10.1.2.3", nil, "10.1.2.3"), ("10.1.2.3", "10.0.0.1", "10.0.0.1"),
      // A proxy appends an address; what is none was sent by the client.
      ("10.1.2.3", "[192.0.2.7]\u{0D4E}, 203.0.113.9", "203.0.113.9"),
      ("10.1.2.3", "192.0.2.7\u{0D4E}, 203.0.113.9", "203.0.113.9"),
      ("10.1.2.3", "[192.0.2.7]\u{0D4E}", "10.1.2.3"), ("10.1.2.3", "unknown", "10.1.2.3"),
      ("10.1.2.3", "192.0.2.7, unknown, 10.9.9.9", "10.9.9.9"),
      ("10.1.2.3", "[2001:db8::1]:443", "2001:db8::1"),
      ("10.1.2.3", "fe80::1%eth0", "fe80::1%eth0"),
    ] as [(String, String?, String)]
  )
  func proxies(peer: String, forwarded: String?, client: String) throws {
    let proxies = try #require(TrustedProxies(["10.0.0.0/8", "fd00::/8"]))
    #expect(proxies.client(peer: peer, forwardedFor: forwarded) == client)
    #expect(TrustedProxies(["10.0.0.0/33"]) == nil)
    #expect(TrustedProxies(["proxy"]) == nil)
    #expect(TrustedProxies.none.client(peer: peer, forwardedFor: forwarded) == peer)
  }

  @Test("A proxy that forwards requests and is not configured is logged once")
  func unnamedProxy() throws {
    let lines = Mutex<[String]>([])
    let logger = Logger(label: "test") { label in
      JSONLogHandler(label: label) { line in
        lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
      }
    }
    let notice = UnnamedProxyNotice(try #require(TrustedProxies(["10.0.0.0/8"])), logger)
    // A configured proxy, a client that is no proxy, and one that forges the header.
    notice.look(peer: "10.1.2.3", forwardedFor: "1.2.3.4")
    notice.look(peer: "192.168.1.1", forwardedFor: nil)
    notice.look(peer: "203.0.113.9", forwardedFor: "1.2.3.4")
    notice.look(peer: nil, forwardedFor: "1.2.3.4")
    #expect(lines.withLock { $0 } == [])
    for _ in 0..<3 { notice.look(peer: "192.168.1.1", forwardedFor: "1.2.3.4") }
    let written = lines.withLock { $0 }
    #expect(written.count == 1)
    #expect(written.first?.contains("192.168.1.1") == true)
  }

  @Test("A file larger than the body limit is streamed in both directions, and by ranges")
  func largeAssets() async throws {
    try await withCloud { cloud in
      _ = try await cloud.call(
        "zones/modify",
        #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"notes"}}}]}"#
      )
      let tokens = try await cloud.call(
        "assets/upload",
        #"{"tokens":[{"recordName":"r","recordType":"Note","fieldName":"f"}]}"#
      )
      let size = 20 * 1_048_576
      let bytes = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 8) })
      let upload = try await cloud.post(try #require(tokens.text("tokens/0/url")), bytes)
      #expect(upload.status == 200)
      let file = try WireCoding.decode(UploadedFileResponse.self, from: upload.body).singleFile
      let value = String(decoding: try WireCoding.encode(file), as: UTF8.self)
      let saved = try await cloud.call(
        "records/modify",
        #"{"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"create","record":"#
          + #"{"recordName":"r","recordType":"Note","fields":{"f":{"value":\#(value)}}}}]}"#
      )
      let url = try #require(saved.text("records/0/fields/f/value/downloadURL"))
      let whole = try await get(url)
      #expect(whole.body == bytes)
      let part = try await get(url, headers: ["range": "bytes=-10"])
      #expect(part.status == 206)
      #expect(part.body == bytes.suffix(10))
      #expect(part.headers["content-range"] == "bytes \(size - 10)-\(size - 1)/\(size)")
      #expect(try await get(url, headers: ["range": "bytes=\(size)-"]).status == 416)
    }
  }

  private func withCloud(_ body: (TestCloud) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "watershed-tests-\(UUID().uuidString)"
    )
    defer { try? FileManager.default.removeItem(at: folder) }
    try await TestCloud.run(in: folder, body)
  }
}
