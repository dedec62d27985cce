import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Shares are read without their fields where only their state is wanted.
@Suite("What is read of shares", .everyEngine)
struct ShareReadTests {
  /// Gives a share a large thumbnail.
  private func enlarge(_ share: String, in zone: ZoneID, _ owner: Person) async throws {
    try await owner.save(
      .forceUpdate,
      share,
      ["cloudkit.thumbnailImageData": .bytes(Data(count: 3000))],
      recordType: ShareDictionary.recordType,
      zone: zone
    )
  }

  @Test("Lists of zones read no field of a share")
  func zones() async throws {
    let (server, count) = try await TestServer.counting()
    let owner = try await server.person("ada").extended
    let guest = try await server.person("bob").extended
    for name in ["y", "z"] {
      let zone = ZoneID(zoneName: name)
      try await owner.makeZone(name)
      let share = try await owner.share(nil, zone: zone, with: [.invited("bob")])
      try await enlarge(ShareDictionary.zoneShareName, in: zone, owner)
      try await guest.accept(share)
    }
    count.reset()
    let mine: ZonesResponse = try await owner.call(.listZones, [String: String]())
    #expect(mine.zones.compactMap { $0.item?.share }.count == 2)
    let theirs: ZonesResponse = try await guest.call(.listZones, [String: String](), in: .shared)
    #expect(theirs.zones.compactMap { $0.item?.share }.count == 2)
    let named: ZonesResponse = try await owner.call(
      .lookupZones,
      LookupZonesRequest(zones: [ZoneID(zoneName: "y")])
    )
    #expect(named.zones[0].item?.share != nil)
    let changed: DatabaseChangesResponse = try await owner.call(
      .databaseChanges,
      DatabaseChangesRequest()
    )
    #expect(changed.zones.compactMap { $0.item?.share }.count == 2)
    #expect(try await guest.sharedChanges().zones.count == 2)
    #expect(count.fieldBytes == 0)
    try await owner.deleteZone("y")
    #expect(count.fieldBytes == 0)
    #expect(try await guest.sharedChanges().zones.count == 1)
  }

  @Test("A new share reads the names of the zone's other shares alone")
  func newShare() async throws {
    let (server, count) = try await TestServer.counting()
    let owner = try await server.person()
    try await owner.makeZone()
    for index in 0..<3 {
      try await owner.save(.create, "r\(index)")
      try await owner.share("r\(index)", "s\(index)")
      try await enlarge("s\(index)", in: TestServer.zone, owner)
    }
    try await owner.save(.create, "root")
    count.reset()
    try await owner.share("root")
    #expect(count.fieldBytes < 1000)
    // The shares of records still exclude a share of the zone.
    await #expect(throws: ErrorDictionary.self) { try await owner.share(nil) }
  }

  @Test("All shares of a zone that is deleted are read, page by page")
  func participants() async throws {
    let server = try await TestServer(limits: { $0.itemsPerRequest = 2 })
    let owner = try await server.person("ada")
    try await owner.makeZone()
    let guests = ["bob", "cleo", "dan"]
    for (index, name) in guests.enumerated() {
      try await owner.save(.create, "r\(index)")
      let share = try await owner.share("r\(index)", "s\(index)", with: [.invited(name)])
      try await server.person(name).accept(share)
    }
    let tokens = try await guestTokens(guests, server)
    try await owner.deleteZone()
    for name in guests {
      let changes = try await server.person(name).sharedChanges(since: tokens[name])
      #expect(changes.zones.compactMap { $0.item?.deleted } == [true])
    }
  }

  private func guestTokens(_ names: [String], _ server: TestServer) async throws -> [String: String]
  {
    var tokens: [String: String] = [:]
    for name in names { tokens[name] = try await server.person(name).sharedChanges().syncToken }
    return tokens
  }

  @Test("A reply about shares has the limit of a look-up")
  func resolve() async throws {
    let server = try await TestServer(limits: { $0.bytesPerReply = 20_000 })
    let owner = try await server.person("ada").extended
    let guest = try await server.person("bob").extended
    try await owner.makeZone()
    try await owner.save(.create, "root", ["text": .string(String(repeating: "x", count: 3000))])
    let share = try await owner.share("root", publicPermission: .readOnly)
    let guid = ShortGUID(value: try #require(share.shortGUID), shouldFetchRootRecord: true)
    let many = ShortGUIDsRequest(shortGUIDs: Array(repeating: guid, count: 10))
    for person in [guest, server.visitor.extended] {
      let refused = try await person.failure(.resolveShares, many, in: .public)
      #expect(refused.extension?.code == .limitExceeded)
      let few: ShareMetadataResponse = try await person.call(
        .resolveShares,
        ShortGUIDsRequest(shortGUIDs: [guid, guid]),
        in: .public
      )
      #expect(few.results.compactMap { $0.item?.rootRecord }.count == 2)
    }
    // Shares that fit into the reply are accepted; the others have to be named again.
    let joined: ShareMetadataResponse = try await guest.call(.acceptShares, many, in: .public)
    let codes = joined.results.map { $0.error?.extension?.code }
    #expect(codes.first == .some(nil))
    #expect(codes.last == .limitExceeded)
    #expect(joined.results.count == 10)
  }
}
