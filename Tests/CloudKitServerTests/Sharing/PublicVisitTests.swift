import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Public shares without a sign-in", .everyEngine)
struct PublicVisitTests {
  /// A shared tree of two records beside one that is not shared.
  private func world(
    _ permission: ParticipantPermission,
    isWhole: Bool = false
  ) async throws -> (Person, RecordDictionary) {
    let owner = try await TestServer().person()
    try await owner.makeZone()
    try await owner.save(.create, "root", ["n": .int64(1)])
    _ = try await owner.modify([.make(.create, "leaf", ["n": .int64(2)], parent: "root")])
    try await owner.save(.create, "other", ["n": .int64(3)])
    let share = try await owner.share(isWhole ? nil : "root", publicPermission: permission)
    return (owner, share)
  }

  /// A visitor with the token of the share, and the share's zone.
  private func visit(
    _ owner: Person,
    _ share: RecordDictionary
  ) async throws -> (Person, ZoneID) {
    var visitor = owner.server.visitor
    let found = try await visitor.resolve(share.shortGUID)
    let access = try #require(found.anonymousPublicAccess)
    #expect(access.databasePartition == "http://127.0.0.1:8080")
    #expect(found.requireAppleLogin == false)
    visitor.publicAccessToken = access.token
    return (visitor, found.zoneID)
  }

  private func names(_ visitor: Person, _ zone: ZoneID) async throws -> [String] {
    try await visitor.feed(zone).names.sorted()
  }

  @Test("A visitor reads the shared records, and no others of the owner")
  func reads() async throws {
    let (owner, share) = try await world(.readOnly)
    let (visitor, zone) = try await visit(owner, share)
    #expect(try await names(visitor, zone) == ["leaf", "root", "share"])
    #expect(try await visitor.lookup("leaf", in: .shared, zone: zone).content("n") == .int64(2))
    await #expect(throws: ErrorDictionary.self) {
      try await visitor.lookup("other", in: .shared, zone: zone)
    }
    let query = RecordQuery(
      recordType: "Note",
      filterBy: [
        QueryFilter(
          comparator: .greaterThan,
          fieldName: "n",
          fieldValue: FieldValue(.int64(0))
        )
      ]
    )
    #expect(try await visitor.query(query, in: .shared, zone: zone).names == ["root", "leaf"])
    let zones: ZonesResponse = try await visitor.call(.listZones, [String: String](), in: .shared)
    #expect(try zones.zones.map { try $0.get().zoneID.zoneName } == [TestServer.zone.zoneName])
  }

  @Test("A visitor's feed continues from its token, and reports deletions")
  func feed() async throws {
    let (owner, share) = try await world(.readOnly)
    let (visitor, zone) = try await visit(owner, share)
    let token = try await visitor.feed(zone).syncToken
    let known = try await visitor.sharedChanges().syncToken
    #expect(try await visitor.sharedChanges(since: known).zones.isEmpty)
    try await owner.save(.forceDelete, "leaf", recordType: nil)
    try await owner.save(.create, "unseen")
    let page = try await visitor.feed(zone, since: token)
    #expect(page.names == ["leaf"])
    #expect(page.records.first?.item?.deleted == true)
    #expect(try await visitor.sharedChanges(since: known).zones.count == 1)
  }

  @Test("A zone that is shared as a whole is read as a whole")
  func wholeZone() async throws {
    let (owner, share) = try await world(.readWrite, isWhole: true)
    let (visitor, zone) = try await visit(owner, share)
    let all = ["cloudkit.zoneshare", "leaf", "other", "root"]
    #expect(try await names(visitor, zone) == all)
  }

  @Test("A visitor cannot write, even where participants may, and is asked to sign in")
  func writes() async throws {
    let (owner, share) = try await world(.readWrite)
    let (visitor, zone) = try await visit(owner, share)
    for endpoint in [
      Endpoint.modifyRecords, .modifyZones, .modifySubscriptions, .listSubscriptions, .uploadAssets,
      .rereferenceAssets, .caller,
    ] {
      let response = await visitor.send(endpoint, Data(#"{"operations":[]}"#.utf8), in: .shared)
      #expect(response.status == 421, "\(endpoint)")
    }
    let error = await #expect(throws: ErrorDictionary.self) {
      try await visitor.save(.forceUpdate, "root", ["n": .int64(9)], in: .shared, zone: zone)
    }
    #expect(error?.serverErrorCode == .authenticationRequired)
    #expect(try await owner.lookup("root").content("n") == .int64(1))
  }

  @Test("The app's own token need not be sent with it, and another app's is checked")
  func apiTokens() async throws {
    let (owner, share) = try await world(.readOnly)
    var (visitor, zone) = try await visit(owner, share)
    visitor.apiToken = ""
    #expect(try await names(visitor, zone).count == 3)
    visitor.apiToken = "unknown"
    let error = try await visitor.failure(.listZones, [String: String](), in: .shared)
    #expect(error.serverErrorCode == .authenticationFailed)
  }

  @Test("After the share is closed, or twenty minutes, the token is invalid")
  func endings() async throws {
    let (owner, share) = try await world(.readOnly)
    let (visitor, zone) = try await visit(owner, share)
    let current = try await owner.lookup("share")
    try await owner.updateShare(current, publicPermission: ParticipantPermission.none)
    await #expect(throws: ErrorDictionary.self) { try await visitor.feed(zone) }
    let zones: ZonesResponse = try await visitor.call(.listZones, [String: String](), in: .shared)
    #expect(zones.zones.isEmpty)
    // The link cannot be resolved any more either.
    await #expect(throws: ErrorDictionary.self) { try await visitor.resolve(share.shortGUID) }

    owner.server.clock.advance(seconds: 20 * 60)
    let error = try await visitor.failure(.listZones, [String: String](), in: .shared)
    #expect(error.serverErrorCode == .authenticationFailed)
  }

  @Test("A token is for its container, environment and the shared database, and cannot be forged")
  func forgeries() async throws {
    let (owner, share) = try await world(.readOnly)
    var (visitor, _) = try await visit(owner, share)
    for scope in [DatabaseScope.private, .public] {
      let endpoint = scope == .public ? Endpoint.caller : .listZones
      let response = await visitor.send(endpoint, Data("{}".utf8), in: scope)
      #expect(response.status == 421, "\(scope)")
    }
    visitor.environment = .production
    #expect(await visitor.send(.listZones, Data("{}".utf8), in: .shared).status == 401)
    visitor.environment = .development
    visitor.publicAccessToken = "forged"
    #expect(await visitor.send(.listZones, Data("{}".utf8), in: .shared).status == 401)
  }

  @Test("A signed-in user, or a visitor of a private share, gets no such token")
  func others() async throws {
    let (owner, open) = try await world(.readOnly)
    let ben = try await owner.server.person("ben")
    #expect(try await ben.resolve(open.shortGUID).anonymousPublicAccess == nil)
    let (closedOwner, closed) = try await world(.none)
    let error = await #expect(throws: ErrorDictionary.self) {
      try await closedOwner.server.visitor.resolve(closed.shortGUID)
    }
    #expect(error?.serverErrorCode == .authenticationRequired)
  }
}
