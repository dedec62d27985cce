import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// The work that one small request causes, counted in rows: in proportion to what it names and owns.
@Suite("The cost of a request", .everyEngine)
struct RequestCostTests {
  /// A guest who has joined some shares of one owner.
  private func joined(
    _ number: Int,
    limits: (inout ServiceLimits) -> Void = { _ in }
  ) async throws -> (owner: Person, guest: Person, shares: [RecordDictionary], ReadCount) {
    let (server, count) = try await TestServer.counting(limits: limits)
    let owner = try await server.person("ada")
    let guest = try await server.person("bob")
    try await owner.makeZone()
    var shares: [RecordDictionary] = []
    for index in 0..<number {
      try await owner.save(.create, "root\(index)")
      let share = try await owner.share("root\(index)", "s\(index)", publicPermission: .readWrite)
      try await guest.accept(share)
      shares.append(share)
    }
    return (owner, guest, shares, count)
  }

  private func deletion(of name: String, owner: String) -> RecordOperation {
    var operation = RecordOperation.make(.forceDelete, name, recordType: nil)
    operation.record.zoneID = ZoneID(zoneName: "notes", ownerRecordName: owner)
    return operation
  }

  @Test("Invented owners in one request do not each read all of a user's links")
  func inventedOwners() async throws {
    let (owner, guest, _, count) = try await joined(5)
    let known = try await owner.userRecordName
    count.reset()
    let operations =
      (0..<50).map { deletion(of: "x", owner: "o\($0)") } + [deletion(of: "root0", owner: known)]
    let results = try await guest.modify(operations, in: .shared, zone: nil)
    #expect(results.prefix(50).allSatisfy { $0.error?.serverErrorCode == .zoneNotFound })
    #expect(results.map { $0.error?.recordName }.prefix(50).allSatisfy { $0 == "x" })
    // Once for the owners, and twice for the known one's part.
    #expect(count.links <= 3 * 5)
    // The same error as a request for that zone alone.
    let alone = try await guest.modify([operations[0]], in: .shared, zone: nil)[0].error
    #expect(alone?.reason == results[0].error?.reason)
    #expect(alone?.serverErrorCode == results[0].error?.serverErrorCode)
    #expect(alone?.zoneID == results[0].error?.zoneID)
  }

  @Test("A save of a share lists no other shares of its zone")
  func sharesOfZone() async throws {
    let (owner, _, _, count) = try await joined(5)
    try await owner.save(.create, "another")
    count.reset()
    let share = try await owner.share("another", "s5")
    try await owner.updateShare(share, publicPermission: .readOnly)
    #expect(count.shares == 0)
    // Only for a zone that is shared as a whole.
    await #expect(throws: ErrorDictionary.self) { try await owner.share(nil) }
    #expect(count.shares == 6)
  }

  @Test("Look-ups in many owners' zones read a user's links once")
  func lookupsOfOwners() async throws {
    let (_, guest, _, count) = try await joined(5)
    count.reset()
    let reply: ZonesResponse = try await guest.call(
      .lookupZones,
      LookupZonesRequest(
        zones: (0..<50).map { ZoneID(zoneName: "notes", ownerRecordName: "o\($0)") }
      ),
      in: .shared
    )
    #expect(reply.zones.allSatisfy { $0.error?.serverErrorCode == .zoneNotFound })
    #expect(count.links <= 5)
  }

  @Test("A part for an owner counts its own bytes for that owner's quota")
  func quotaOfParts() async throws {
    let (owner, guest, _, _) = try await joined(1) {
      $0.userQuota = 1_000_000
    }
    let zone = ZoneID(zoneName: "notes", ownerRecordName: try await owner.userRecordName)
    let bulk = FieldContent.string(String(repeating: "x", count: 600_000))
    func write(_ name: String) async throws -> ItemResult<RecordDictionary> {
      var operation = RecordOperation.make(.create, name, ["t": bulk], parent: "root0")
      operation.record.zoneID = zone
      let strangers = (0..<19).map { deletion(of: "x", owner: "o\($0)") }
      return try await guest.modify([operation] + strangers, in: .shared, zone: nil)[0]
    }
    // The database is counted by the first request; until the next count the ledger counts.
    #expect(try await write("a").error == nil)
    #expect(try await write("b").error == nil)
    #expect(try await write("c").error?.serverErrorCode == .quotaExceeded)
  }

  @Test("A share that was joined already is not written again, however often it is named")
  func joinedShare() async throws {
    let (owner, guest, shares, count) = try await joined(2)
    let id = try owner.server.service.storage.partition(
      PartitionKey(
        container: TestServer.container,
        environment: .development,
        scope: .private,
        owner: try await owner.userRecordName
      )
    )
    func counter() throws -> ChangeNumber {
      try owner.server.service.storage.read { try $0.database(id).counter }
    }
    let before = try counter()
    count.reset()
    let guid = try #require(shares[0].shortGUID)
    let request = ShortGUIDsRequest(
      shortGUIDs: Array(repeating: ShortGUID(value: guid), count: 20)
    )
    let reply: ShareMetadataResponse = try await guest.call(.acceptShares, request, in: .public)
    #expect(reply.results.count == 20)
    #expect(reply.results.allSatisfy { $0.error == nil })
    #expect(try counter() == before)
    // All links are never read for it.
    #expect(count.links == 0)
  }

  @Test("The short IDs of one request count for the rate as requests")
  func rateOfShortIDs() async throws {
    let (_, guest, shares, _) = try await joined(1) {
      $0.requestsPerSecond = 1
      $0.requestBurst = 40
    }
    let guid = try #require(shares[0].shortGUID)
    let request = ShortGUIDsRequest(
      shortGUIDs: Array(repeating: ShortGUID(value: guid), count: 100)
    )
    let _: ShareMetadataResponse = try await guest.call(.acceptShares, request, in: .public)
    let refused = try await guest.failure(.acceptShares, request, in: .public)
    #expect(refused.serverErrorCode == .throttled)
  }

  @Test("Children of a root beyond the limit are not read")
  func children() async throws {
    let (server, count) = try await TestServer.counting(limits: { $0.recordsPerShareChange = 4 })
    let ada = try await server.person().extended
    try await ada.makeZone()
    try await ada.save(.create, "root")
    _ = try await ada.modify((0..<30).map { .make(.create, "c\($0)", parent: "root") })
    count.reset()
    let refused = await #expect(throws: ErrorDictionary.self) { try await ada.share("root") }
    #expect(refused?.extension?.code == .limitExceeded)
    #expect(count.children <= 5)
  }

  @Test("A sign-out reads only its own account's devices")
  func signOut() async throws {
    let (server, count) = try await TestServer.counting()
    let people = [try await server.person("ada"), try await server.person("bob")]
    for person in people {
      for _ in 0..<3 {
        let _: DeviceTokenResponse = try await person.call(
          .createToken,
          DeviceTokenRequest(apnsEnvironment: "development"),
          in: nil
        )
      }
    }
    count.reset()
    try await server.service.sessions.signOutEverywhere("ada")
    #expect(count.devices <= 3)
    // Only the one account's session ended, and the others' are still in memory.
    #expect(await people[0].send(.caller, Data("{}".utf8), in: .public).status != 200)
    #expect(await people[1].send(.caller, Data("{}".utf8), in: .public).status == 200)
  }

  @Test("The readiness of the server is read once in a second, for any number of requests")
  func readiness() async throws {
    let (server, count) = try await TestServer.counting()
    count.reset()
    for _ in 0..<20 { #expect(await server.service.isReady()) }
    #expect(count.reads == 1)
    server.clock.advance(seconds: 2)
    #expect(await server.service.isReady())
    #expect(count.reads == 2)
  }
}
