import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Names that are looked up, referred to and opened.
@Suite("Names in requests", .everyEngine)
struct NameBoundsTests {
  @Test("A reference and a parent must be valid record names", arguments: [255, 256])
  func targets(length: Int) async throws {
    let ada = try await TestServer().person()
    try await ada.makeZone()
    let name = String(repeating: "x", count: length)
    let target = ReferenceValue(recordName: name, action: ReferenceAction.none)
    let fields = ["one": FieldContent.reference(target), "more": .referenceList([target])]
    for (field, content) in fields {
      let item = try await ada.modify([.make(.create, nil, [field: content])])[0]
      #expect((item.error == nil) == (length <= 255))
      if length > 255 { #expect(item.error?.serverErrorCode == .badRequest) }
    }
    let below = try await ada.modify([.make(.create, nil, parent: name)])[0]
    #expect(below.error?.serverErrorCode != .internalError)
  }

  @Test(
    "A name that no record can have is treated as missing",
    arguments: [String(repeating: "x", count: 3000), "a\u{0}b", "é", "\u{202E}", ""]
  )
  func lookups(name: String) async throws {
    let ada = try await TestServer().person()
    try await ada.makeZone()
    let reply: RecordsResponse = try await ada.call(
      .lookupRecords,
      LookupRecordsRequest(
        records: [LookupRecord(recordName: name)],
        zoneID: TestServer.zone
      )
    )
    #expect(reply.records[0].error?.serverErrorCode == .notFound)
    let link = FieldContent.reference(ReferenceValue(recordName: name, action: .deleteSelf))
    let item = try await ada.modify([.make(.create, "a", ["link": link])])[0]
    #expect(item.error?.serverErrorCode == .badRequest)
  }

  @Test(
    "A container's name has no control characters and is not too long",
    arguments: ["a\u{0}b", "a\nb", "a\u{1B}[31m", "a\u{202E}b", String(repeating: "x", count: 256)]
  )
  func containers(name: String) async throws {
    let server = try await TestServer()
    await #expect(throws: (any Error).self) {
      try await server.service.signIn(userName: "ada", container: name)
    }
    _ = try await server.person()
    await #expect(throws: ErrorDictionary.self) {
      try await server.service.signIn(userName: "ada", container: name)
    }
    let path = WebServicePath(
      container: name,
      environment: .development,
      database: .public,
      endpoint: .listZones
    ).text(items: [(WebServiceName.apiToken, server.apiToken)])
    #expect(await server.send("GET", path).status == 400)
    let known = try server.service.status().containers
    #expect(!known.contains(name))
  }

  @Test("A user may look up a limited number of people per hour")
  func people() async throws {
    let server = try await TestServer(limits: { $0.peopleLookedUpPerHour = 5 })
    let ada = try await server.person()
    _ = try await server.person("bob")
    let three = LookupUsersRequest(
      users: ["bob@example.com", "x@example.com", "y@example.com"].map {
        LookupInfo(emailAddress: $0)
      }
    )
    let found: UsersResponse = try await ada.call(.lookupUsersByEmail, three, in: .public)
    #expect(found.users.count == 1)
    let refused = await ada.send(.discoverUsers, try body(3), in: .public)
    #expect(refused.status == 429)
    #expect(Int(refused.headers["retry-after"] ?? "") ?? 0 > 0)
    #expect(await ada.send(.discoverUsers, try body(2), in: .public).status == 200)
    server.clock.advance(seconds: 3600)
    #expect(await ada.send(.discoverUsers, try body(5), in: .public).status == 200)
  }

  private func body(_ count: Int) throws -> Data {
    try WireCoding.encode(
      DiscoverUsersRequest(
        lookupInfos: (0..<count).map { LookupInfo(emailAddress: "p\($0)@example.com") }
      )
    )
  }
}
