import CloudKitWebServices
import Foundation
import Synchronization
import Testing

@testable import CloudKitServer

@Suite("Expiry of tombstones and tokens")
struct FeedExpiryTests {
  private let day = 24.0 * 60 * 60

  private func longSessions(_ limits: inout ServiceLimits) {
    limits.keptSessionLifetime = 1000 * day
  }

  private func error(_ body: () async throws -> Void) async -> ErrorDictionary? {
    do {
      try await body()
      return nil
    } catch {
      return error as? ErrorDictionary
    }
  }

  @Test("Expired tombstones are removed; tokens that need them have expired, newer ones have not")
  func collection() async throws {
    let server = try await TestServer(limits: longSessions)
    let person = try await server.person().extended
    try await person.makeZone()
    for name in ["a", "b", "c"] { try await person.save(.create, name) }
    let old = try await person.changes().syncToken
    try await person.save(.forceDelete, "a", recordType: nil)
    let middle = try await person.changes(since: old).syncToken
    server.clock.advance(seconds: 60 * day)
    try await person.save(.forceDelete, "b", recordType: nil)
    server.clock.advance(seconds: 60 * day)
    // Nothing expires before it is collected.
    #expect(try await person.changes(since: old).names == ["a", "b"])
    try await server.service.collectTraces()
    let expired = await error { _ = try await person.changes(since: old) }
    #expect(expired?.serverErrorCode == .badRequest)
    #expect(expired?.extension?.code == .changeTokenExpired)
    #expect(expired?.extension?.cause == .tooOld)
    #expect(try await person.changes(since: middle).names == ["b"])
    #expect(try await person.changes().names == ["c"])
    // A client that did not request extensions gets no exact code.
    var plain = person
    plain.isExtended = false
    let said = await error { _ = try await plain.changes(since: old) }
    #expect(said?.extension == nil)
    #expect(said?.reason == "the sync token has expired, start again without one")
  }

  @Test("Expired tombstones are removed in transactions of limited size, the oldest first")
  func steps() async throws {
    let horizons = Mutex<[ChangeNumber]>([])
    let limits: (inout ServiceLimits) -> Void = {
      longSessions(&$0)
      $0.rowsPerRemoval = 2
    }
    let server = try await TestServer(
      limits: limits,
      storage: { base in
        let storage = FlakyStorage(base)
        storage.interpose { batch, _ in
          horizons.withLock { $0 += batch.collectedZones.map(\.horizon) }
          // Observes every commit.
          return false
        }
        return storage
      }
    )
    let person = try await server.person().extended
    try await person.makeZone()
    let names = ["a", "b", "c", "d", "e", "f"]
    for name in names { try await person.save(.create, name) }
    for name in names.dropLast() { try await person.save(.forceDelete, name, recordType: nil) }
    server.clock.advance(seconds: 120 * day)
    try await server.service.collectTraces()
    let found = horizons.withLock { $0 }
    #expect(found.count == 3)
    #expect(found == found.sorted())
    #expect(try await person.changes().names == ["f"])
    try await server.service.collectTraces()
    #expect(horizons.withLock { $0 } == found)
  }

  /// With another cause a client would send the deleted objects again.
  @Test("A token older than tombstones has expired by age, also after a failover each week")
  func failovers() async throws {
    let server = try await TestServer(limits: longSessions)
    let person = try await server.person().extended
    try await person.makeZone()
    for name in ["a", "b"] { try await person.save(.create, name) }
    let old = try await person.changes().syncToken
    try await person.save(.forceDelete, "a", recordType: nil)
    for _ in 0..<17 {
      server.clock.advance(seconds: 7 * day)
      try server.service.storage.branchOff()
    }
    try await server.service.collectTraces()
    let expired = await error { _ = try await person.changes(since: old) }
    #expect(expired?.extension?.code == .changeTokenExpired)
    #expect(expired?.extension?.cause == .tooOld)
  }

  @Test("A first listing in progress continues when tombstones are collected")
  func listing() async throws {
    let server = try await TestServer(limits: longSessions)
    let person = try await server.person()
    try await person.makeZone()
    try await person.save(.create, "gone")
    try await person.save(.forceDelete, "gone", recordType: nil)
    for name in ["a", "b", "c"] { try await person.save(.create, name) }
    server.clock.advance(seconds: 100 * day)
    let page = try await person.changes(limit: 1)
    try await server.service.collectTraces()
    #expect(try await person.changes(since: page.syncToken).names == ["b", "c"])
    // But not past a deletion that it would have to report.
    try await person.save(.forceDelete, "a", recordType: nil)
    server.clock.advance(seconds: 100 * day)
    try await server.service.collectTraces()
    #expect(await error { _ = try await person.changes(since: page.syncToken) } != nil)
  }

  @Test("Departures from a share are removed after their time too")
  func departures() async throws {
    let tree = try await SharedTree(limits: longSessions)
    let old = try await tree.guest.feed(tree.zone).syncToken
    _ = try await tree.owner.modify([
      {
        var operation = RecordOperation.make(.forceUpdate, "b")
        operation.record.removesParent = true
        return operation
      }()
    ])
    #expect(try await tree.guest.feed(tree.zone, since: old).names == ["b"])
    tree.server.clock.advance(seconds: 100 * day)
    let guest = tree.guest
    try await tree.server.service.collectTraces()
    #expect(await error { _ = try await guest.feed(tree.zone, since: old) } != nil)
    #expect(try await guest.feed(tree.zone).names.sorted() == ["a", "root", "share"])
  }

  @Test(
    "A client with extensions gets whether a zone was deleted, purged or reset",
    arguments: [
      (StoredZone.Ending.purged, ErrorExtensionCode.zonePurged),
      (.userDeleted, .userDeletedZone), (.encryptedDataReset, .encryptedDataReset),
    ]
  )
  func endings(ending: StoredZone.Ending, code: ErrorExtensionCode) async throws {
    let server = try await TestServer()
    let person = try await server.person().extended
    try await person.makeZone()
    let token = try await
      (person.call(
        .databaseChanges,
        DatabaseChangesRequest()
      ) as DatabaseChangesResponse).syncToken
    try await server.service.zones.end(
      named: "notes",
      container: TestServer.container,
      environment: .development,
      userRecordName: try await person.userRecordName,
      ending: ending
    )
    #expect(await error { _ = try await person.changes() }?.extension?.code == code)
    let request = DatabaseChangesRequest(syncToken: token)
    let reported: DatabaseChangesResponse = try await person.call(.databaseChanges, request)
    #expect(reported.zones.map { $0.item?.extension?.code } == [code])
    var plain = person
    plain.isExtended = false
    let quiet: DatabaseChangesResponse = try await plain.call(.databaseChanges, request)
    #expect(quiet.zones.map { $0.item?.deleted } == [true])
    #expect(quiet.zones.first?.item?.extension == nil)
  }

  @Test("A token reveals no counter, and is refused for another user or zone")
  func opacity() async throws {
    let tree = try await SharedTree()
    let token = try #require(try await tree.guest.feed(tree.zone).syncToken)
    let base64 = token.replacing("-", with: "+").replacing("_", with: "/")
    let padded = base64 + String(repeating: "=", count: (4 - base64.count % 4) % 4)
    let bytes = try #require(Data(base64Encoded: padded))
    // Not a single quotation mark: encrypted bytes may contain one.
    #expect(!String(decoding: bytes, as: UTF8.self).contains("{\""))
    #expect(await error { _ = try await tree.owner.changes(since: token) } != nil)
    var changed = Array(token)
    changed[10] = changed[10] == "A" ? "B" : "A"
    let forged = await error {
      _ = try await tree.guest.feed(tree.zone, since: String(changed))
    }
    #expect(forged?.reason == "Unknown sync continuation type")
  }

  @Test("Participation in a shared zone begins with a new listing")
  func secondStay() async throws {
    let server = try await TestServer()
    let (owner, guest) = (try await server.person("ada"), try await server.person("bob").extended)
    let zone = try await TestServer.zone.owned(by: owner)
    try await owner.makeZone()
    try await owner.save(.create, "x")
    let share = try await owner.share(nil, publicPermission: .readOnly)
    try await guest.accept(share)
    let token = try await guest.feed(zone).syncToken
    _ = try await guest.modify(
      [.make(.forceDelete, "cloudkit.zoneshare", recordType: nil)],
      in: .shared,
      zone: zone
    )
    try await guest.accept(share)
    let expired = await error { _ = try await guest.feed(zone, since: token) }
    #expect(expired?.extension?.code == .changeTokenExpired)
    #expect(try await guest.feed(zone).names.sorted() == ["cloudkit.zoneshare", "x"])
  }
}
