import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Zones and changes", .everyEngine)
struct ZonesAndChangesTests {
  private func zoneNames(_ person: Person) async throws -> [String] {
    let reply: ZonesResponse = try await person.call(.listZones, [String: String]())
    return reply.zones.compactMap { $0.item?.zoneID.zoneName }
  }

  // MARK: Zones

  @Test("Zones are created, listed, looked up and deleted; creating one twice succeeds")
  func zones() async throws {
    let person = try await TestServer().person()
    #expect(try await zoneNames(person) == ["_defaultZone"])
    try await person.makeZone("a")
    try await person.makeZone("a")
    #expect(try await zoneNames(person) == ["_defaultZone", "a"])
    let found: ZonesResponse = try await person.call(
      .lookupZones,
      LookupZonesRequest(zones: [ZoneID(zoneName: "a"), ZoneID(zoneName: "b")])
    )
    #expect(found.zones[0].item?.atomic == true)
    #expect(found.zones[0].item?.zoneID.zoneType == "REGULAR_CUSTOM_ZONE")
    #expect(found.zones[1].error?.serverErrorCode == .zoneNotFound)
    #expect(found.zones[1].error?.zoneID?.zoneName == "b")
    try await person.deleteZone("a")
    #expect(try await zoneNames(person) == ["_defaultZone"])
    await #expect(throws: ErrorDictionary.self) { try await person.deleteZone("a") }
  }

  @Test("A zone needs a name that is not reserved", arguments: ["", "_x", "é"])
  func zoneNames(name: String) async throws {
    let person = try await TestServer().person()
    await #expect(throws: ErrorDictionary.self) { try await person.makeZone(name) }
  }

  @Test("A database has a limited number of zones", arguments: [1, 2, 3])
  func zoneLimit(count: Int) async throws {
    let person = try await TestServer(limits: { $0.zonesPerDatabase = 2 }).person()
    for number in 1..<count { try await person.makeZone("z\(number)") }
    if count <= 2 {
      try await person.makeZone("last")
    } else {
      await #expect(throws: ErrorDictionary.self) { try await person.makeZone("last") }
    }
  }

  @Test("The public database has no custom zones and no changes")
  func publicDatabase() async throws {
    let person = try await TestServer().person()
    let request = ModifyZonesRequest(operations: [])
    #expect(
      try await person.failure(.modifyZones, request, in: .public).serverErrorCode == .badRequest
    )
    #expect(
      try await person.failure(.databaseChanges, DatabaseChangesRequest(), in: .public)
        .serverErrorCode == .badRequest
    )
  }

  @Test("Users never see each other's zones")
  func separatePeople() async throws {
    let server = try await TestServer()
    let (ada, bob) = (try await server.person("ada"), try await server.person("bob"))
    try await ada.makeZone("a")
    #expect(try await zoneNames(bob) == ["_defaultZone"])
  }

  // MARK: Database changes

  @Test("A database's changes list each changed zone once, deleted ones as deleted")
  func databaseFeed() async throws {
    let person = try await TestServer().person()
    try await person.makeZone("a")
    try await person.makeZone("b")
    let first = try await person.databaseChanges()
    #expect(first.zones.compactMap { $0.item?.zoneID.zoneName } == ["a", "b"])
    #expect(first.moreComing == false)
    #expect(try await person.databaseChanges(since: first.syncToken).zones.isEmpty)

    try await person.save(.create, "r", zone: ZoneID(zoneName: "a"))
    try await person.save(.create, "s", zone: ZoneID(zoneName: "a"))
    let second = try await person.databaseChanges(since: first.syncToken)
    #expect(second.zones.compactMap { $0.item?.zoneID.zoneName } == ["a"])
    try await person.deleteZone("b")
    let third = try await person.databaseChanges(since: second.syncToken)
    #expect(third.zones.map { $0.item?.deleted } == [true])
    // A client without a token does not receive it.
    #expect(try await person.databaseChanges().zones.count == 1)
  }

  @Test("A database's changes are paged")
  func databasePages() async throws {
    let person = try await TestServer().person()
    for number in 0..<5 { try await person.makeZone("z\(number)") }
    var token: String?
    var names: [String] = []
    var pages = 0
    repeat {
      let page = try await person.databaseChanges(since: token, limit: 2)
      names += page.zones.compactMap { $0.item?.zoneID.zoneName }
      token = page.syncToken
      pages += 1
      if page.moreComing != true { break }
    } while true
    #expect(names == ["z0", "z1", "z2", "z3", "z4"])
    #expect(pages == 3)
  }

  // MARK: Zone changes

  @Test("A record changed several times appears once, at its last change")
  func latestStateOnce() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    for name in ["a", "b", "c"] { try await person.save(.create, name, ["n": .int64(1)]) }
    try await person.save(.forceUpdate, "a", ["n": .int64(2)])
    try await person.save(.forceUpdate, "a", ["n": .int64(3)])
    let changes = try await person.changes()
    #expect(changes.names == ["b", "c", "a"])
    #expect(changes.records.last?.item?.content("n") == .int64(3))
    #expect(try await person.changes(reverse: true).names == ["a", "c", "b"])
  }

  @Test("A tombstone has the record's type only for clients that requested extensions")
  func tombstones() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    try await person.save(.create, "a", ["n": .int64(1)])
    let token = try await person.changes().syncToken
    try await person.save(.forceDelete, "a")
    let plain = try await person.changes(since: token)
    #expect(plain.records == [.success(RecordDictionary(recordName: "a", deleted: true))])
    let exact = try await person.extended.changes(since: token)
    #expect(exact.records[0].item?.recordType == "Note")
  }

  @Test("Pages, forward and newest first, have every record exactly once", arguments: [1, 2, 3, 7])
  func pages(size: Int) async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    let names = (0..<7).map { "r\($0)" }
    for name in names { try await person.save(.create, name) }
    for reverse in [false, true] {
      var token: String?
      var seen: [String] = []
      while true {
        let page = try await person.changes(since: token, limit: size, reverse: reverse)
        seen += page.names
        token = page.syncToken
        if page.moreComing != true { break }
      }
      #expect(seen == (reverse ? names.reversed() : names))
      // In both orders the listing ends at the zone's newest change.
      #expect(try await person.changes(since: token).names.isEmpty)
    }
  }

  @Test("Changes between two pages are in a later one")
  func changesBetweenPages() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    for name in ["a", "b", "c"] { try await person.save(.create, name) }
    let first = try await person.changes(limit: 2)
    try await person.save(.forceUpdate, "a", ["n": .int64(1)])
    try await person.save(.forceDelete, "b")
    let second = try await person.changes(since: first.syncToken)
    #expect(second.names == ["c", "a", "b"])
  }

  @Test("Types and keys can be selected; deletions are reported for all types")
  func choices() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    try await person.save(.create, "a", ["x": .int64(1), "y": .int64(2)])
    try await person.save(.create, "b", recordType: "Other")
    let token = try await person.changes().syncToken
    try await person.save(.forceDelete, "b")
    try await person.save(.forceUpdate, "a", ["x": .int64(3)])
    let reply: ZoneChangesResponse = try await person.call(
      .zoneChanges,
      ZoneChangesRequest(
        zones: [ZoneChangesOptions(zoneID: TestServer.zone, syncToken: token)],
        feed: FeedOptions(desiredKeys: ["y"], desiredRecordTypes: ["Note"])
      )
    )
    let records = try reply.zones[0].get().records
    #expect(records[0].item?.deleted == true)
    #expect(records[1].item?.fields == ["y": FieldValue(.int64(2))])
    let older: ZoneChanges = try await person.call(
      .changedRecords,
      ZoneChangesOptions(zoneID: TestServer.zone, syncToken: token)
    )
    #expect(older.names == ["b", "a"])
  }

  @Test("The default zone has no changes")
  func defaultZone() async throws {
    let person = try await TestServer().person()
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.changes(zone: .defaultZone)
    }
    #expect(error?.reason == "cannot get changes in default zone")
  }

  // MARK: Tokens

  @Test("A token that is invalid, changed, or another user's is refused")
  func misusedTokens() async throws {
    let server = try await TestServer()
    let (ada, bob) = (try await server.person("ada"), try await server.person("bob"))
    for person in [ada, bob] { try await person.makeZone() }
    let mine = try #require(try await ada.changes().syncToken)
    let ofDatabase = try #require(try await ada.databaseChanges().syncToken)
    let bobs = try #require(try await bob.changes().syncToken)
    for wrong in ["x", "a.b", String(mine.dropLast()), mine + "A", "." + mine, bobs, ofDatabase] {
      let error = await #expect(throws: ErrorDictionary.self) {
        try await ada.extended.changes(since: wrong)
      }
      #expect(error?.serverErrorCode == .badRequest)
      // A server whose secret was lost sees all tokens like this: clients start from the beginning.
      #expect(error?.extension?.code == .changeTokenExpired)
      #expect(error?.extension?.cause == .otherIncarnation)
    }
    #expect(try await ada.changes(since: mine).names.isEmpty)
  }

  @Test("A token of a zone that was deleted and created again has expired")
  func recreatedZone() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    let token = try await person.changes().syncToken
    try await person.deleteZone()
    let gone = await #expect(throws: ErrorDictionary.self) {
      try await person.changes(since: token)
    }
    #expect(gone?.serverErrorCode == .zoneNotFound)
    try await person.makeZone()
    let plain = await #expect(throws: ErrorDictionary.self) {
      try await person.changes(since: token)
    }
    #expect(plain?.serverErrorCode == .badRequest)
    #expect(plain?.extension == nil)
    let exact = await #expect(throws: ErrorDictionary.self) {
      try await person.extended.changes(since: token)
    }
    #expect(exact?.extension?.code == .changeTokenExpired)
    #expect(exact?.extension?.cause == .otherZone)
  }

  @Test("A zone that an administrator ended has the reason, for clients with extensions")
  func endedZone() async throws {
    let person = try await TestServer().person().extended
    let cases: [(StoredZone.Ending, ErrorExtensionCode?)] = [
      (.purged, .zonePurged), (.userDeleted, .userDeletedZone), (.deleted, nil),
    ]
    for (ending, code) in cases {
      try await person.makeZone()
      let user: UserIdentity = try await person.call(.caller, [String: String](), in: .public)
      try await person.server.service.zones.end(
        named: TestServer.zone.zoneName,
        container: TestServer.container,
        environment: .development,
        userRecordName: user.userRecordName ?? "",
        ending: ending
      )
      let results = try await person.modify([.make(.create, "r")])
      #expect(results[0].error?.serverErrorCode == .zoneNotFound)
      #expect(results[0].error?.extension?.code == code)
    }
  }

  @Test(
    "All zones that one batch wrote are listed, also across a page of the database's feed"
  )
  func zonesOfOneBatch() async throws {
    let person = try await TestServer().person()
    let names = ["a", "b", "c"]
    for name in names { try await person.makeZone(name) }
    let start: DatabaseChangesResponse = try await person.call(
      .databaseChanges,
      DatabaseChangesRequest()
    )
    let operations = names.map { name in
      var operation = RecordOperation.make(.create, "r")
      operation.record.zoneID = ZoneID(zoneName: name)
      return operation
    }
    for item in try await person.modify(operations, zone: nil) { _ = try item.get() }
    var token = start.syncToken
    var found: [String] = []
    var isMoreComing = true
    while isMoreComing {
      let page: DatabaseChangesResponse = try await person.call(
        .databaseChanges,
        DatabaseChangesRequest(syncToken: token, resultsLimit: 1)
      )
      found += page.zones.compactMap { $0.item?.zoneID.zoneName }
      token = page.syncToken
      isMoreComing = page.moreComing ?? false
    }
    #expect(found.sorted() == names)
  }
}
