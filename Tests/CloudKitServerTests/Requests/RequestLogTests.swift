import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("The log of apps' requests")
struct RequestLogTests {
  private func administrator(
    limits change: (inout ServiceLimits) -> Void = { _ in }
  ) async throws -> Administrator {
    Administrator(
      server: try await TestServer(limits: change, administratorToken: "operator's token"),
      token: "operator's token"
    )
  }

  private func page(
    _ admin: Administrator,
    _ query: RequestQuery = .init()
  ) async throws
    -> RequestPage
  {
    let body = String(decoding: try WireCoding.encode(query), as: UTF8.self)
    let response = await admin.send("requests/list", body)
    try #require(response.status == 200)
    return try WireCoding.decode(RequestPage.self, from: response.body)
  }

  @Test("A request has its sender, names and outcome in the log, and no value and no token")
  func facts() async throws {
    let admin = try await administrator()
    let person = try await admin.server.person().on("laptop")
    try await person.makeZone()
    try await person.save(.create, "a", ["title": .string("a private text")])
    let page = try await page(admin, RequestQuery(endpoint: "records/modify"))
    let request = try #require(page.requests.first)
    #expect(page.requests.count == 1)
    #expect(request.container == TestServer.container)
    #expect(request.environment == .development)
    #expect(request.database == .private)
    #expect(request.user == (try await person.userRecordName))
    #expect(request.userName == "ada")
    #expect(request.device == "laptop")
    #expect(request.recordTypes == ["Note"])
    #expect(request.zones == ["notes"])
    #expect(request.items == 1)
    #expect(request.status == 200)
    #expect(request.outcome == "OK")
    #expect(request.bytesIn > 0 && request.bytesOut > 0)
    let text = String(decoding: await admin.send("requests/list").body, as: UTF8.self)
    #expect(!text.contains("a private text"))
    #expect(!text.contains(try #require(person.webAuthToken)))
    #expect(!text.contains(admin.server.apiToken))
  }

  @Test("Refused requests and batches with refused records are found by their errors")
  func errors() async throws {
    let admin = try await administrator()
    let person = try await admin.server.person()
    try await person.makeZone()
    try await person.save(.create, "a")
    await #expect(throws: ErrorDictionary.self) { try await person.save(.create, "a") }
    var stranger = person
    stranger.webAuthToken = nil
    _ = try await stranger.failure(.listZones, [String: String]())
    stranger.apiToken = "unknown"
    _ = try await stranger.failure(.listZones, [String: String]())
    let found = try await page(admin, RequestQuery(onlyErrors: true)).requests
    #expect(found.map(\.endpoint) == ["records/modify", "zones/list", "zones/list"])
    #expect(found.map(\.outcome) == ["OK", "AUTHENTICATION_REQUIRED", "AUTHENTICATION_FAILED"])
    #expect(found.first?.refused == ["EXISTS": 1])
    let metrics = admin.server.service.metricsText
    #expect(metrics.contains("\nwatershed_refusals_total{code=\"AUTHENTICATION_REQUIRED\"} 1\n"))
    #expect(metrics.contains("\nwatershed_item_refusals_total{code=\"EXISTS\"} 1\n"))
  }

  @Test("Requests are found by user, container and time")
  func filters() async throws {
    let admin = try await administrator()
    let ada = try await admin.server.person()
    try await ada.makeZone()
    admin.server.clock.advance(seconds: 60)
    let bob = try await admin.server.person("bob")
    try await bob.makeZone()
    func users(_ query: RequestQuery) async throws -> [String?] {
      try await page(admin, query).requests.map(\.userName)
    }
    #expect(try await users(RequestQuery(user: "ADA")) == ["ada"])
    #expect(try await users(RequestQuery(user: try await bob.userRecordName)).contains("bob"))
    #expect(try await users(RequestQuery(user: "nobody")).isEmpty)
    #expect(try await users(RequestQuery(container: "iCloud.none")).isEmpty)
    #expect(try await users(RequestQuery(environment: .production)).isEmpty)
    let start = admin.server.service.now
    #expect(try await users(RequestQuery(since: start)).contains("ada") == false)
    let unknown = await admin.send("requests/list", #"{"endpoint":"records/none"}"#)
    #expect(unknown.status == 400)
  }

  @Test("The log has a limited number of requests, and of their bytes", arguments: [3, 4, 5])
  func bounds(count: Int) async throws {
    let admin = try await administrator { $0.loggedRequests = 4 }
    let visitor = admin.server.visitor
    for _ in 0..<count { _ = await visitor.send(.listZones, Data("{}".utf8), in: .public) }
    let found = try await page(admin)
    #expect(found.requests.map(\.number) == Array(Int64(max(1, count - 3))...Int64(count)))
    #expect(found.last == Int64(count))
    let small = try await administrator { $0.loggedRequestBytes = 1000 }
    let long = small.server.visitor.on(String(repeating: "x", count: 255))
    for _ in 0..<5 { _ = await long.send(.listZones, Data("{}".utf8), in: .public) }
    let kept = try await page(small)
    #expect(kept.requests.map(\.number) == [5] || kept.requests.map(\.number) == [4, 5])
  }

  @Test("Reading the log is recorded in the audit log, once an hour for a reader who follows it")
  func audited() async throws {
    let server = try await TestServer(administratorToken: "operator's token")
    let admin = Administrator(server: server, token: "operator's token")
    func lines() async throws -> Int {
      try await server.service.auditLog.lines(AuditQuery(kind: "request")).lines.count
    }
    // A number that the caller has made up.
    for _ in 0..<3 { _ = try await admin.call("requests/list", #"{"after":0}"#) }
    #expect(try await lines() == 1)
    server.clock.advance(seconds: 3601)
    _ = try await admin.call("requests/list", #"{"after":1}"#)
    #expect(try await lines() == 2)
    _ = try await admin.call("requests/list", "{}")
    #expect(try await lines() == 3)
    // The requests of another user are another matter.
    for _ in 0..<2 { _ = try await admin.call("requests/list", #"{"after":0,"user":"ada"}"#) }
    #expect(try await lines() == 4)
  }

  @Test("A reader continues after a number, and with the newest requests of another log")
  func following() async throws {
    let admin = try await administrator()
    let visitor = admin.server.visitor
    for _ in 0..<5 { _ = await visitor.send(.listZones, Data("{}".utf8), in: .public) }
    var query = RequestQuery(limit: 2)
    let newest = try await page(admin, query)
    #expect(newest.requests.map(\.number) == [4, 5])
    query.log = newest.log
    query.after = 1
    let first = try await page(admin, query)
    #expect(first.requests.map(\.number) == [2, 3])
    query.after = first.last
    #expect(try await page(admin, query).requests.map(\.number) == [4, 5])
    query.after = newest.last
    #expect(try await page(admin, query).requests.isEmpty)
    // Another server's log, which a balancer's next answer may be from.
    query.log = "another"
    #expect(try await page(admin, query).requests.map(\.number) == [4, 5])
    _ = await visitor.send(.listZones, Data("{}".utf8), in: .public)
    let next = try await page(admin, query)
    #expect(next.requests.map(\.number) == [5, 6])
    #expect(next.last == 6)
  }
}
