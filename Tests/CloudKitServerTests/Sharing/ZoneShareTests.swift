import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Zones that are shared as a whole", .everyEngine)
struct ZoneShareTests {
  private func list(_ person: Person, _ scope: DatabaseScope) async throws -> [ZoneDictionary] {
    let reply: ZonesResponse = try await person.call(.listZones, [String: String](), in: scope)
    return reply.zones.compactMap(\.item).filter { !$0.zoneID.isDefault }
  }

  private func lookup(
    _ person: Person,
    _ zone: ZoneID,
    _ scope: DatabaseScope
  ) async throws -> ZoneDictionary {
    let reply: ZonesResponse = try await person.call(
      .lookupZones,
      LookupZonesRequest(zones: [zone]),
      in: scope
    )
    return try reply.zones[0].get()
  }

  private func save(_ person: Person) async throws -> ZoneDictionary {
    let zone = ZoneDictionary(zoneID: TestServer.zone)
    let reply: ZonesResponse = try await person.call(
      .modifyZones,
      ModifyZonesRequest(operations: [ZoneOperation(operationType: .create, zone: zone)])
    )
    return try reply.zones[0].get()
  }

  private func changed(_ person: Person, _ scope: DatabaseScope) async throws -> [ZoneDictionary] {
    let reply: DatabaseChangesResponse = try await person.call(
      .databaseChanges,
      DatabaseChangesRequest(),
      in: scope
    )
    return reply.zones.compactMap(\.item)
  }

  @Test("Owner and participants see that a zone is shared as a whole, until the share ends")
  func everywhere() async throws {
    let server = try await TestServer()
    let (owner, guest) = (try await server.person("ada"), try await server.person("bob"))
    let zone = try await TestServer.zone.owned(by: owner)
    #expect(try await save(owner).share == nil)
    try await owner.makeZone("other")
    let share = try await owner.share(nil, with: [.invited("bob")])
    try await guest.accept(share)
    let reference = ReferenceValue(
      recordName: "cloudkit.zoneshare",
      zoneID: try await list(owner, .private).first { $0.zoneID.zoneName == "notes" }?.zoneID
    )
    func shares(_ zones: [ZoneDictionary]) -> [String: ReferenceValue?] {
      Dictionary(uniqueKeysWithValues: zones.map { ($0.zoneID.zoneName, $0.share) })
    }
    #expect(shares(try await list(owner, .private)) == ["notes": reference, "other": nil])
    #expect(try await lookup(owner, TestServer.zone, .private).share == reference)
    #expect(try await save(owner).share == reference)
    #expect(
      shares(try await changed(owner.extended, .private)) == ["notes": reference, "other": nil]
    )
    #expect(shares(try await list(guest, .shared)) == ["notes": reference])
    #expect(try await lookup(guest, zone, .shared).share == reference)
    #expect(shares(try await changed(guest.extended, .shared)) == ["notes": reference])
    // Strict clients of the feed accept no such key.
    #expect(shares(try await changed(owner, .private)) == ["notes": nil, "other": nil])
    #expect(shares(try await changed(guest, .shared)) == ["notes": nil])

    try await owner.save(.forceDelete, "cloudkit.zoneshare", recordType: nil)
    #expect(shares(try await list(owner, .private)) == ["notes": nil, "other": nil])
    #expect(try await lookup(owner, TestServer.zone, .private).share == nil)
  }

  @Test("A zone with shared records in it cannot be shared as a whole")
  func hierarchies() async throws {
    let tree = try await SharedTree()
    #expect(try await list(tree.owner, .private).map(\.share) == [nil])
    #expect(try await list(tree.guest, .shared).map(\.share) == [nil])
    await #expect(throws: ErrorDictionary.self) { try await tree.owner.share(nil) }
  }

  @Test("A zone is shared as a whole by the request that deletes its last other share")
  func replacingShares() async throws {
    let tree = try await SharedTree()
    let share = RecordDictionary(
      recordName: ShareDictionary.zoneShareName,
      recordType: ShareDictionary.recordType,
      sharing: ShareDictionary()
    )
    let results = try await tree.owner.modify([
      .make(.forceDelete, "share", recordType: nil),
      RecordOperation(operationType: .create, record: share),
    ])
    for result in results { _ = try result.get() }
    #expect(try await list(tree.owner, .private).map(\.share) != [nil])
  }
}
