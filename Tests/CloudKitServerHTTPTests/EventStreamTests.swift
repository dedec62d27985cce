import AsyncHTTPClient
import CloudKitServer
import CloudKitServerHTTP
import Foundation
import NIOCore
import Testing

/// Notifications as server-sent events, over sockets.
@Suite("The event stream over HTTP")
struct EventStreamTests {
  /// Reads events from a response until one has the text.
  private func read(
    _ body: inout HTTPClientResponse.Body.AsyncIterator,
    until text: String
  ) async throws -> String {
    var found = ""
    while !found.contains(text), let part = try await body.next() {
      found += String(buffer: part)
    }
    return found
  }

  private func open(_ url: String, after id: String? = nil) async throws -> HTTPClientResponse {
    var request = HTTPClientRequest(url: url)
    if let id { request.headers.add(name: "Last-Event-ID", value: id) }
    return try await HTTPClient.shared.execute(request, timeout: .minutes(10))
  }

  @Test("A commit reaches an open stream, an interrupted one resumes, and a stop ends it")
  func stream() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        _ = try await cloud.call(
          "zones/modify",
          #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"notes"}}}]}"#
        )
        _ = try await cloud.call(
          "subscriptions/modify",
          #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"db","subscriptionType":"database"}}]}"#
        )
        let device = try await cloud.call("tokens/create", "{}")
        let url = try #require(device.text("webcourierURL")).replacing(
          "/webcourier/",
          with: "/events/"
        )
        let response = try await open(url)
        #expect(response.status == .ok)
        #expect(response.headers.first(name: "content-type") == "text/event-stream")
        var body = response.body.makeAsyncIterator()
        #expect(try await read(&body, until: "retry: 1000").contains("retry: 1000"))

        func save(_ name: String) async throws {
          _ = try await cloud.call(
            "records/modify",
            #"{"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"create","record":{"recordName":"\#(name)","recordType":"Note"}}]}"#
          )
        }
        try await save("a")
        let event = try await read(&body, until: "\"zid\":\"notes\"")
        #expect(event.contains("\"sid\":\"db\""))
        let line = try #require(event.split(separator: "\n").last { $0.hasPrefix("id: ") })
        let id = String(line.dropFirst(4))

        try await save("b")
        let again = try await open(url, after: id)
        var rest = again.body.makeAsyncIterator()
        let missed = try await read(&rest, until: "\"zid\":\"notes\"")
        #expect(!missed.contains("resync"))

        let unknown = try await open(cloud.url + "/events/unknown")
        #expect(unknown.status == .notFound)

        try await cloud.server.stop()
        #expect(try await read(&rest, until: "never").contains("never") == false)
      }
    }
  }
}
