import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Bodies with more values than any request needs are refused before they are decoded.
@Suite("Bounds of bodies", .everyEngine)
struct BodyBoundsTests {
  private func error(
    _ person: Person,
    _ endpoint: Endpoint,
    _ body: String,
    in scope: DatabaseScope = .private
  ) async throws -> ErrorDictionary? {
    let response = await person.send(endpoint, Data(body.utf8), in: scope)
    guard response.status != 200 else { return nil }
    return try WireCoding.decode(ErrorDictionary.self, from: response.body)
  }

  private func list(_ element: String, _ count: Int) -> String {
    Array(repeating: element, count: count).joined(separator: ",")
  }

  @Test("A field's list has as many elements as fit in a record", arguments: [100, 101])
  func list(count: Int) async throws {
    let person = try await TestServer(limits: { $0.recordSize = 400 }).person().extended
    let record =
      #"{"recordName":"r","recordType":"N","fields":{"a":{"value":[\#(list("1", count))]}}}"#
    let refused = try await error(
      person,
      .modifyRecords,
      #"{"operations":[{"operationType":"create","record":\#(record)}]}"#
    )
    // The smaller list is decoded, and its record is too large.
    #expect(refused?.extension?.code == (count > 100 ? .limitExceeded : nil))
    #expect(refused?.reason == (count > 100 ? "'value' has more than 100 elements" : nil))
  }

  @Test("All values of a request are counted, of members that nothing reads too")
  func values() async throws {
    let person = try await TestServer(limits: { $0.valuesPerRequest = 50 }).person().extended
    for members in [#""x":[\#(list("1", 60))]"#, #""x":{"y":[\#(list("{}", 60))]}"#] {
      let refused = try await error(person, .lookupRecords, #"{"records":[],\#(members)}"#)
      #expect(refused?.extension?.code == .limitExceeded)
    }
    #expect(try await error(person, .lookupRecords, #"{"records":[]}"#) == nil)
  }

  @Test(
    "Each list of a request has a limit",
    arguments: [
      (.modifyRecords, "operations", #"{"operationType":"create","record":{}}"#, 200),
      (.lookupRecords, "records", #"{"recordName":"r"}"#, 200),
      (.lookupZones, "zones", #"{"zoneName":"z"}"#, 200),
      (.modifyZones, "operations", #"{"operationType":"create","zone":{}}"#, 200),
      (.zoneChanges, "zones", #"{"zoneID":{"zoneName":"z"}}"#, 200),
      (.lookupSubscriptions, "subscriptions", #"{"subscriptionID":"s"}"#, 200),
      (.modifySubscriptions, "operations", #"{"operationType":"create"}"#, 200),
      (.discoverUsers, "lookupInfos", "{}", 200), (.lookupUsersByID, "users", "{}", 200),
      (.uploadAssets, "tokens", "{}", 200), (.rereferenceAssets, "assets", "{}", 200),
      (.resolveShares, "shortGUIDs", #""0a""#, 200), (.acceptShares, "shortGUIDs", #""0a""#, 200),
      (.requestAccess, "shortGUIDs", #""0a""#, 200),
      (.modifyRecords, "desiredKeys", #""a""#, 1000),
      (.changedRecords, "desiredRecordTypes", #""a""#, 1000),
      (.queryRecords, "filterBy", "{}", 200), (.queryRecords, "sortBy", "{}", 200),
      (.queryRecords, "anything", "{}", 1000),
    ] as [(Endpoint, String, String, Int)]
  )
  func lists(endpoint: Endpoint, member: String, element: String, limit: Int) async throws {
    let person = try await TestServer().person().extended
    let body = #"{"\#(member)":[\#(list(element, limit + 1))]}"#
    let refused = try await error(person, endpoint, body, in: .public)
    #expect(refused?.extension?.code == .limitExceeded)
    #expect(refused?.reason == "'\(member)' has more than \(limit) elements")
    let allowed = #"{"\#(member)":[\#(list(element, limit))]}"#
    let other = try await error(person, endpoint, allowed, in: .public)
    #expect(other?.reason?.contains("has more than") != true)
  }

  @Test("The values of a query's filters are counted before they are decoded")
  func filters() async throws {
    let visitor = try await TestServer().visitor.extended
    func body(_ values: [Int]) -> String {
      let filters = values.map {
        #"{"comparator":"IN","fieldName":"a","fieldValue":{"value":[\#(list("1", $0))]}}"#
      }
      return #"{"query":{"recordType":"T","filterBy":[\#(filters.joined(separator: ","))]}}"#
    }
    for values in [[2001], [2000, 2000, 1]] {
      let refused = try await error(visitor, .queryRecords, body(values), in: .public)
      #expect(refused?.extension?.code == .limitExceeded)
    }
    let allowed = try await error(visitor, .queryRecords, body([1000, 1000]), in: .public)
    #expect(allowed?.extension?.code != .limitExceeded)
  }

  @Test("A record's field may have the name of a member of queries")
  func fieldNames() async throws {
    let person = try await TestServer().person().extended
    let names = ["fieldValue", "operations", "participants", "value", "filterBy"]
    let fields = names.map { #""\#($0)":{"value":[\#(list("1", 1001))]}"# }
    let record =
      #"{"recordName":"r","recordType":"N","fields":{\#(fields.joined(separator: ","))}}"#
    let refused = try await error(
      person,
      .modifyRecords,
      #"{"operations":[{"operationType":"create","record":\#(record)}]}"#
    )
    #expect(refused == nil)
    let saved = try await person.lookup("r", zone: .defaultZone)
    #expect(saved.content("fieldValue") == .int64List(Array(repeating: 1, count: 1001)))
  }

  @Test("More participants than shares have are refused before anyone is looked up")
  func participants() async throws {
    let (server, count) = try await TestServer.counting(limits: { $0.participantsPerRequest = 250 })
    let owner = try await server.person().extended
    try await owner.makeZone()
    _ = try await owner.modify([.make(.create, "a"), .make(.create, "b")])
    func share(_ root: String, _ people: Int) -> String {
      let entry = #"{"userIdentity":{"lookupInfo":{"userRecordName":"_x"}}}"#
      return #"""
        {"operationType":"create","record":{"recordName":"s\#(root)","recordType":"cloudkit.share",
        "forRecord":{"recordName":"\#(root)"},"participants":[\#(list(entry, people))]}}
        """#
    }
    func body(_ shares: [String]) -> String {
      #"{"zoneID":{"zoneName":"notes"},"operations":[\#(shares.joined(separator: ","))]}"#
    }
    count.reset()
    for shares in [[share("a", 203)], [share("a", 130), share("b", 130)]] {
      let refused = try await error(owner, .modifyRecords, body(shares))
      #expect(refused?.extension?.code == .limitExceeded)
    }
    // The one who asks is looked up, and no participant.
    let before = count.users
    #expect(before <= 4)
    // Equal entries are looked up once.
    #expect(try await error(owner, .modifyRecords, body([share("a", 100)])) == nil)
    #expect(count.users - before <= 6)
  }
}
