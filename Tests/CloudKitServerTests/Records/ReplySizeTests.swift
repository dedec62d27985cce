import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// The limit of one reply, for all requests.
@Suite("The size of a reply", .everyEngine)
struct ReplySizeTests {
  private static let text = String(repeating: "x", count: 3000)

  /// A user with six records of 3,000 bytes in each of these zones.
  private func world(
    zones: [String] = [TestServer.zone.zoneName],
    limits: @escaping (inout ServiceLimits) -> Void
  ) async throws -> Person {
    let server = try await TestServer(isLenient: true, limits: limits)
    let person = try await server.person().extended
    for zone in zones {
      try await person.makeZone(zone)
      for start in [0, 3] {
        _ = try await person.modify(
          (start..<start + 3).map {
            .make(
              .create,
              "\(zone)\($0)",
              ["text": .string(Self.text), "n": .int64(Int64($0 % 2))]
            )
          },
          zone: ZoneID(zoneName: zone)
        )
      }
    }
    return person
  }

  @Test("A page ends at the record that reaches its bytes", arguments: [-1, 0, 1])
  func ends(over: Int) {
    let items = (0..<6).map { number in
      ZoneFeed.Item(
        position: ZoneFeed.Position(change: ChangeNumber(Int64(number))),
        content: .departed(RecordKey(zone: ZoneNumber(1), name: "\(number)"), type: "Note")
      )
    }
    // A deletion counts 256 bytes.
    let size = FeedPage.Size(records: 200, bytes: 4 * 256 + over, weight: \.size)
    #expect(size.count(of: items) == (over > 0 ? 5 : 4))
    // A page has at least one item, also with a limit of 0.
    #expect(FeedPage.Size(records: 200, bytes: 0, weight: \.size).count(of: items) == 1)
    #expect(FeedPage.Size(records: 200, bytes: 0, weight: \.size).count(of: []) == 0)
    #expect(FeedPage.Size(records: 3, bytes: .max, weight: \.size).count(of: items) == 3)
  }

  @Test("A feed is paged by bytes, each record once", arguments: [false, true])
  func feed(isReversed: Bool) async throws {
    let person = try await world { $0.bytesPerPage = 6000 }
    var names: [String] = []
    var token: String?
    var pages = 0
    while true {
      let page = try await person.changes(since: token, reverse: isReversed)
      #expect(page.names.count <= 2)
      names += page.names
      token = page.syncToken
      pages += 1
      guard page.moreComing == true, pages < 20 else { break }
    }
    #expect(pages >= 3)
    let all = (0..<6).map { "notes\($0)" }
    #expect(names == (isReversed ? all.reversed() : all))
  }

  @Test("The zones of one request share the byte limit of one reply, and none is skipped")
  func severalZones() async throws {
    let person = try await world(zones: ["a", "b", "c"]) { $0.bytesPerPage = 6000 }
    var tokens: [String: String] = [:]
    var found: [String: [String]] = [:]
    var open = ["a", "b", "c"]
    var rounds = 0
    while !open.isEmpty, rounds < 30 {
      rounds += 1
      let request = ZoneChangesRequest(
        zones: open.map {
          ZoneChangesOptions(zoneID: ZoneID(zoneName: $0), syncToken: tokens[$0])
        }
      )
      let response = await person.send(.zoneChanges, try WireCoding.encode(request))
      #expect(response.body.count < 6000 + 8000)
      let reply = try WireCoding.decode(ZoneChangesResponse.self, from: response.body)
      for item in reply.zones {
        let zone = try item.get()
        let name = try #require(zone.zoneID?.zoneName)
        tokens[name] = zone.syncToken
        found[name, default: []] += zone.names
        if zone.moreComing != true { open.removeAll { $0 == name } }
      }
    }
    for zone in ["a", "b", "c"] { #expect(found[zone] == (0..<6).map { "\(zone)\($0)" }) }
  }

  @Test("Paging through deletions with long names skips none", arguments: [false, true])
  func largeDeletions(isReversed: Bool) async throws {
    let server = try await TestServer(isLenient: true) { $0.bytesPerPage = 6000 }
    let person = try await server.person()
    try await person.makeZone()
    let names = (0..<40).map { "\($0)" + String(repeating: "n", count: 248) }
    _ = try await person.modify(names.map { .make(.create, $0) })
    var token = try await person.changes(limit: 200).syncToken
    while true {
      let page = try await person.changes(since: token)
      token = page.syncToken
      guard page.moreComing == true else { break }
    }
    _ = try await person.modify(names.map { .make(.forceDelete, $0, recordType: nil) })
    try await person.save(.create, "last")
    var found: [String] = []
    var pages = 0
    while pages < 50 {
      let page = try await person.changes(since: token, reverse: isReversed)
      found += page.names
      token = page.syncToken
      pages += 1
      guard page.moreComing == true else { break }
    }
    #expect(pages > 1)
    #expect(found.sorted() == (names + ["last"]).sorted())
  }

  @Test("A zone may be named once in a request, for any spelling of its owner")
  func repeatedZone() async throws {
    let person = try await world { _ in }
    let name = try await person.userRecordName
    for owner in [nil, "__defaultOwner__", name] {
      let error = try await person.failure(
        .zoneChanges,
        ZoneChangesRequest(zones: [
          ZoneChangesOptions(zoneID: TestServer.zone),
          ZoneChangesOptions(zoneID: ZoneID(zoneName: "notes", ownerRecordName: owner)),
        ])
      )
      #expect(error.serverErrorCode == .badRequest)
    }
  }

  @Test("A query is paged by bytes, with an order and without")
  func query() async throws {
    let person = try await world { $0.bytesPerPage = 6000 }
    for sorts in [
      [], [QuerySort(fieldName: "n")],
      [
        QuerySort(fieldName: "n"), QuerySort(systemFieldName: "recordName", ascending: false),
      ],
    ] {
      var names: [String] = []
      var marker: String?
      var pages = 0
      repeat {
        let page = try await person.query(
          RecordQuery(recordType: "Note", sortBy: sorts),
          marker: marker
        )
        #expect(page.names.count <= 2)
        names += page.names
        marker = page.continuationMarker
        pages += 1
      } while marker != nil && pages < 20
      #expect(pages >= 3)
      #expect(names.sorted() == (0..<6).map { "notes\($0)" })
      if sorts.count == 2 {
        #expect(names == [4, 2, 0, 5, 3, 1].map { "notes\($0)" })
      }
    }
  }

  @Test("A look-up and a reply to a save that would be too large are refused as a whole")
  func refused() async throws {
    let person = try await world { $0.bytesPerReply = 15_000 }
    func lookUp(_ names: [String]) -> LookupRecordsRequest {
      LookupRecordsRequest(
        records: names.map { LookupRecord(recordName: $0) },
        zoneID: TestServer.zone
      )
    }
    let names = (0..<6).map { "notes\($0)" }
    let error = try await person.failure(.lookupRecords, lookUp(names))
    #expect(error.extension?.code == .limitExceeded)
    // The same for one record, repeated.
    let again = try await person.failure(
      .lookupRecords,
      lookUp(Array(repeating: "notes0", count: 6))
    )
    #expect(again.extension?.code == .limitExceeded)
    let few: RecordsResponse = try await person.call(.lookupRecords, lookUp(["notes0", "notes1"]))
    #expect(few.records.allSatisfy { $0.item != nil })
    // A save returns the fields that it does not set.
    let saves = names.map { RecordOperation.make(.forceUpdate, $0, ["n": .int64(9)]) }
    let refused = try await person.failure(
      .modifyRecords,
      ModifyRecordsRequest(operations: saves, zoneID: TestServer.zone)
    )
    #expect(refused.extension?.code == .limitExceeded)
    #expect(try await person.lookup("notes1").content("n") == .int64(1))
  }
}
