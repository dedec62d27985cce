import AsyncHTTPClient
import CloudKitServer
import CloudKitServerHTTP
import Foundation
import NIOCore
import Testing

/// The service over sockets, called like any client of the protocol.
@Suite("The service over HTTP")
struct EndToEndTests {
  private static let makeZone = """
    {"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"notes"}}}]}
    """

  private static func save(_ name: String, title: String, tag: String? = nil) -> String {
    let (verb, tagText) =
      tag.map { ("update", ",\"recordChangeTag\":\"\($0)\"") } ?? ("create", "")
    return """
      {"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"\(verb)","record":{
      "recordName":"\(name)","recordType":"Note"\(tagText),
      "fields":{"title":{"value":"\(title)","type":"STRING"}}}}]}
      """
  }

  @Test("Zones, records, look-ups, queries and changes work through the service")
  func recordsMakeARound() async throws {
    try await withCloud { cloud in
      let zone = try await cloud.call("zones/modify", Self.makeZone)
      #expect(zone.status == 200)
      #expect(zone.text("zones/0/zoneID/zoneName") == "notes")
      let before = try await cloud.call(
        "changes/zone",
        #"{"zones":[{"zoneID":{"zoneName":"notes"}}]}"#
      )
      let token = try #require(before.text("zones/0/syncToken"))

      let saved = try await cloud.call("records/modify", Self.save("n1", title: "first"))
      #expect(saved.status == 200)
      let tag = try #require(saved.text("records/0/recordChangeTag"))
      _ = try await cloud.call("records/modify", Self.save("n2", title: "second"))
      let updated = try await cloud.call(
        "records/modify",
        Self.save("n1", title: "third", tag: tag)
      )
      #expect(updated.text("records/0/fields/title/value") == "third")
      let stale = try await cloud.call("records/modify", Self.save("n1", title: "lost", tag: tag))
      #expect(stale.text("records/0/serverErrorCode") == "CONFLICT")

      let found = try await cloud.call(
        "records/lookup",
        #"{"zoneID":{"zoneName":"notes"},"records":[{"recordName":"n1"}]}"#
      )
      #expect(found.text("records/0/fields/title/value") == "third")
      let asked = try await cloud.call(
        "records/query",
        #"{"zoneID":{"zoneName":"notes"},"query":{"recordType":"Note","filterBy":[{"fieldName":"title","comparator":"EQUALS","fieldValue":{"value":"second","type":"STRING"}}]}}"#
      )
      #expect(asked.count("records") == 1)
      #expect(asked.text("records/0/recordName") == "n2")

      let deleted = try await cloud.call(
        "records/modify",
        #"{"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"forceDelete","record":{"recordName":"n2"}}]}"#
      )
      #expect(deleted["records/0/deleted"] as? Bool == true)
      let changes = try await cloud.call(
        "changes/zone",
        #"{"zones":[{"zoneID":{"zoneName":"notes"},"syncToken":"\#(token)"}]}"#
      )
      #expect(changes.count("zones/0/records") == 2)
      #expect(changes.text("zones/0/records/0/recordName") == "n1")
      #expect(changes.text("zones/0/records/1/recordName") == "n2")
      #expect(changes["zones/0/records/1/deleted"] as? Bool == true)
    }
  }

  @Test("An asset is downloaded byte for byte by its URL")
  func assetsMakeARound() async throws {
    try await withCloud { cloud in
      _ = try await cloud.call("zones/modify", Self.makeZone)
      let bytes = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 9) })
      let upload = try await cloud.call(
        "assets/upload",
        #"{"zoneID":{"zoneName":"notes"},"tokens":[{"recordName":"a1","recordType":"Picture","fieldName":"image"}]}"#
      )
      let address = try #require(upload.text("tokens/0/url"))
      #expect(address.hasPrefix(cloud.url))
      let receipt = JSONReply(try await cloud.post(address, bytes))
      let asset = try #require(receipt["singleFile"])
      let value = String(decoding: try JSONSerialization.data(withJSONObject: asset), as: UTF8.self)
      let saved = try await cloud.call(
        "records/modify",
        """
        {"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"create","record":{
        "recordName":"a1","recordType":"Picture",
        "fields":{"image":{"type":"ASSETID","value":\(value)}}}}]}
        """
      )
      #expect(saved.status == 200)
      let found = try await cloud.call(
        "records/lookup",
        #"{"zoneID":{"zoneName":"notes"},"records":[{"recordName":"a1"}]}"#
      )
      let download = try #require(found.text("records/0/fields/image/value/downloadURL"))
      let reply = try await cloud.get(download)
      #expect(reply.status == 200)
      #expect(reply.body == bytes)
    }
  }

  @Test("A commit by one device wakes the long poll of another, and not its own")
  func commitsWakeLongPolls() async throws {
    try await withCloud { cloud in
      _ = try await cloud.call("zones/modify", Self.makeZone)
      let subscribed = try await cloud.call(
        "subscriptions/modify",
        #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"all","subscriptionType":"database","notificationInfo":{"shouldSendContentAvailable":true}}}]}"#,
        client: "laptop"
      )
      #expect(subscribed.text("subscriptions/0/subscriptionID") == "all")
      let device = try await cloud.call(
        "tokens/create",
        #"{"apnsEnvironment":"development","clientId":"laptop"}"#,
        client: "laptop"
      )
      let courier = try #require(device.text("webcourierURL"))
      async let poll = cloud.get(courier)
      _ = try await cloud.call("records/modify", Self.save("own", title: "x"), client: "laptop")
      _ = try await cloud.call("records/modify", Self.save("n1", title: "x"), client: "phone")
      let notification = JSONReply(try await poll)
      #expect(notification.status == 200)
      #expect(notification.text("ck/cid") == TestCloud.container)
    }
  }

  @Test("An invalid request gets the error dictionary, with its status")
  func refusalsAreDictionaries() async throws {
    try await withCloud { cloud in
      let malformed = try await cloud.call("records/modify", #"{"operations":["#)
      #expect(malformed.status == 400)
      #expect(malformed.text("serverErrorCode") == "BAD_REQUEST")
      #expect(malformed.text("uuid") == malformed.reply.headers["x-apple-request-uuid"])
      let wrong = try await cloud.call("records/lookup", "{}", apiToken: "nobody")
      #expect(wrong.status == 401)
      #expect(wrong.text("serverErrorCode") == "AUTHENTICATION_FAILED")
      let unknown = try await cloud.call("records/imagine", "{}")
      #expect(unknown.status == 404)
      let absent = try await cloud.call(
        "changes/zone",
        #"{"zones":[{"zoneID":{"zoneName":"nowhere"}}]}"#
      )
      #expect(absent.text("zones/0/serverErrorCode") == "ZONE_NOT_FOUND")
      let plain = JSONReply(try await cloud.get(cloud.url + "/nothing/here"))
      #expect(plain.status == 404)
      #expect(plain.text("serverErrorCode") == "NOT_FOUND")
    }
  }

  @Test("Without a user private data replies 421, and its sign-in page returns a token")
  func signInGivesAToken() async throws {
    try await withCloud { cloud in
      let refused = try await cloud.call("users/caller", "", database: "public", webAuthToken: nil)
      #expect(refused.status == 421)
      #expect(refused.text("serverErrorCode") == "AUTHENTICATION_REQUIRED")
      let page = try #require(refused.text("redirectURL"))
      #expect(page.hasPrefix(cloud.url))
      #expect(try await cloud.get(page).status == 200)
      let wrong = try await cloud.post(page, Data("user=anna&password=guess".utf8))
      #expect(wrong.status == 401)
      let known = try await cloud.call("users/caller", "", database: "public")
      #expect(known.status == 200)
      #expect(known.text("userRecordName")?.hasPrefix("_") == true)
    }
  }

  @Test("Acknowledged changes and tokens survive a restart")
  func dataSurvivesARestart() async throws {
    try await withTemporaryFolder { folder in
      let (tokens, keep) = AsyncStream.makeStream(of: (api: String, web: String).self)
      try await TestCloud.run(in: folder) { cloud in
        _ = try await cloud.call("zones/modify", Self.makeZone)
        _ = try await cloud.call("records/modify", Self.save("n1", title: "kept"))
        keep.yield((cloud.apiToken, cloud.webAuthToken))
      }
      let known = try #require(await tokens.first { _ in true })
      try await TestCloud.run(in: folder) { cloud in
        #expect(cloud.apiToken == known.api)
        let found = try await cloud.call(
          "records/lookup",
          #"{"zoneID":{"zoneName":"notes"},"records":[{"recordName":"n1"}]}"#,
          webAuthToken: known.web
        )
        #expect(found.text("records/0/fields/title/value") == "kept")
      }
    }
  }

  @Test("Two servers in one process are independent")
  func serversAreApart() async throws {
    try await withCloud { first in
      try await withCloud { second in
        _ = try await first.call("zones/modify", Self.makeZone)
        let zones = try await second.call("zones/lookup", #"{"zones":[{"zoneName":"notes"}]}"#)
        #expect(zones.text("zones/0/serverErrorCode") == "ZONE_NOT_FOUND")
        let stranger = try await second.call("zones/list", "{}", apiToken: first.apiToken)
        #expect(stranger.status == 401)
      }
    }
  }

  @Test("A browser can send requests from its page: preflight, origin and exposed headers")
  func answersBrowsers() async throws {
    try await withCloud { cloud in
      var preflight = HTTPClientRequest(url: cloud.url + "/database/1/x/development/private/a/b")
      preflight.method = .OPTIONS
      preflight.headers.add(name: "Origin", value: "http://localhost:3000")
      let allowed = try await send(preflight)
      #expect(allowed.status == 204)
      #expect(allowed.headers["allow"] == "GET, POST, PUT, DELETE")
      #expect(allowed.headers["access-control-allow-origin"] == "http://localhost:3000")
      var refused = HTTPClientRequest(url: cloud.url + "/database/1/x/development/private/a/b")
      refused.headers.add(name: "Origin", value: "http://localhost:3000")
      let reply = try await send(refused)
      #expect(reply.headers["access-control-allow-origin"] == "http://localhost:3000")
      #expect(
        reply.headers["access-control-expose-headers"]?.contains("X-Apple-Request-UUID") == true
      )
      #expect(reply.headers["x-apple-cloudkit-version"] == "1.0")
    }
  }

  @Test("Many concurrent requests all get replies")
  func answersManyAtOnce() async throws {
    try await withCloud { cloud in
      _ = try await cloud.call("zones/modify", Self.makeZone)
      try await withThrowingTaskGroup(of: Int.self) { group in
        for index in 0..<40 {
          group.addTask {
            try await cloud.call("records/modify", Self.save("n\(index)", title: "t\(index)"))
              .status
          }
        }
        for try await status in group { #expect(status == 200) }
      }
      let all = try await cloud.call(
        "changes/zone",
        #"{"zones":[{"zoneID":{"zoneName":"notes"}}]}"#
      )
      #expect(all.count("zones/0/records") == 40)
    }
  }

  private func withCloud(_ body: (TestCloud) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder, body)
    }
  }
}
