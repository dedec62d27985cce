import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("The shared database", .everyEngine)
struct SharedDatabaseTests {
  @Test("After accepting, the zone is in the shared database with its owner's name")
  func accept() async throws {
    let tree = try await SharedTree(accepts: false)
    func zones() async throws -> [ZoneDictionary] {
      let reply: ZonesResponse = try await tree.guest.call(
        .listZones,
        [String: String](),
        in: .shared
      )
      return reply.zones.compactMap(\.item)
    }
    #expect(try await zones().isEmpty)
    let before = try await tree.guest.sharedChanges()
    #expect(before.zones.isEmpty)
    let accepted = try await tree.guest.accept(tree.share)
    #expect(accepted.participantStatus == .accepted)
    // Accepting twice succeeds.
    #expect(try await tree.guest.accept(tree.share).participantStatus == .accepted)
    #expect(try await zones().map(\.zoneID.ownerRecordName) == [tree.zone.ownerRecordName])
    let after = try await tree.guest.sharedChanges(since: before.syncToken)
    #expect(after.zones.map { $0.item?.zoneID.zoneName } == ["notes"])
    #expect(try await tree.sharedNames() == ["a", "b", "root", "share"])
    #expect(try await tree.guest.lookup("b", in: .shared, zone: tree.zone).parent != nil)
    let mine = try await tree.guest.lookup("share", in: .shared, zone: tree.zone)
    #expect(mine.sharing?.currentUserParticipant?.acceptanceStatus == .accepted)
  }

  @Test("Unshared records are treated as missing in look-ups, changes, deletions and references")
  func hidden() async throws {
    let tree = try await SharedTree()
    let (guest, zone) = (tree.guest, tree.zone)
    let hidden = await #expect(throws: ErrorDictionary.self) {
      try await guest.lookup("c", in: .shared, zone: zone)
    }
    let absent = await #expect(throws: ErrorDictionary.self) {
      try await guest.lookup("z", in: .shared, zone: zone)
    }
    #expect(hidden?.reason == absent?.reason)
    for (type, tag) in [(RecordOperationType.update, "t"), (.forceUpdate, nil), (.create, nil)] {
      let results = try await guest.modify(
        [.make(type, "c", tag: tag), .make(type, "z", tag: tag)],
        in: .shared,
        zone: zone,
        atomic: false
      )
      #expect(results[0].error != nil)
      #expect(results[0].error?.serverErrorCode == results[1].error?.serverErrorCode)
    }
    let deleted = try await guest.modify(
      [.make(.forceDelete, "c"), .make(.forceDelete, "z")],
      in: .shared,
      zone: zone
    )
    #expect(deleted.map { $0.item?.deleted } == [true, true])
    #expect(try await tree.owner.lookup("c").recordName == "c")
    let reference = ReferenceValue(recordName: "c", action: .validate)
    await #expect(throws: ErrorDictionary.self) {
      try await guest.save(
        .forceUpdate,
        "a",
        ["to": .reference(reference)],
        in: .shared,
        zone: zone
      )
    }
    let wrongParent = try await guest.modify(
      [.make(.create, "new", parent: "c")],
      in: .shared,
      zone: zone
    )
    #expect(wrongParent[0].error != nil)
  }

  @Test(
    "An invisible name, a free name elsewhere and a forbidden write are refused alike",
    arguments: [ParticipantPermission.readOnly, .readWrite]
  )
  func hiddenNames(permission: ParticipantPermission) async throws {
    let tree = try await SharedTree(permission)
    try await tree.owner.save(.create, "d")
    func error(_ operation: RecordOperation) async throws -> ErrorDictionary? {
      var error = try await tree.guest.extended.modify(
        [operation],
        in: .shared,
        zone: tree.zone,
        atomic: false
      )[0].error
      error?.recordName = nil
      return error
    }
    let dangling = FieldContent.reference(ReferenceValue(recordName: "no", action: .validate))
    let places: [(parent: String?, fields: [String: FieldContent])] = [
      (nil, [:]), (nil, ["title": .int64(1)]), (nil, ["to": dangling]), ("d", [:]), ("none", [:]),
      (permission == .readOnly ? "a" : nil, [:]),
    ]
    for type in [RecordOperationType.create, .forceUpdate, .forceReplace] {
      for place in places {
        let free = try await error(.make(type, "free", place.fields, parent: place.parent))
        let hidden = try await error(.make(type, "c", place.fields, parent: place.parent))
        #expect(free != nil)
        #expect(hidden == free, "\(type) \(place)")
      }
      guard permission == .readOnly else { continue }
      let mine = try await error(.make(.forceUpdate, "a", parent: "root"))
      #expect(mine?.serverErrorCode == .accessDenied)
      #expect(try await error(.make(type, "c")) == mine)
    }
  }

  @Test("A participant writes only with the permission, and only below shared records")
  func writing() async throws {
    let tree = try await SharedTree()
    let made = try await tree.guest.modify(
      [.make(.create, "new", parent: "a")],
      in: .shared,
      zone: tree.zone
    )
    #expect(try made[0].get().created?.userRecordName == (try await tree.guest.userRecordName))
    #expect(try await tree.owner.lookup("new").parent?.recordName == "a")
    await #expect(throws: ErrorDictionary.self) {
      try await tree.guest.save(.create, "loose", in: .shared, zone: tree.zone)
    }
    for name in ["root", "share"] {
      let tag = try await tree.owner.lookup(name).recordChangeTag
      if name == "root" {
        await #expect(throws: ErrorDictionary.self) {
          try await tree.guest.save(.delete, name, tag: tag, in: .shared, zone: tree.zone)
        }
      } else {
        let share = try await tree.guest.lookup(name, in: .shared, zone: tree.zone)
        await #expect(throws: ErrorDictionary.self) {
          try await tree.guest.updateShare(
            share,
            publicPermission: .readWrite,
            in: .shared,
            zone: tree.zone
          )
        }
      }
    }
  }

  @Test("A participant with read permission cannot write")
  func readOnly() async throws {
    let tree = try await SharedTree(.readOnly)
    for operation in [
      RecordOperation.make(.forceUpdate, "a"), .make(.create, "new", parent: "a"),
      .make(.forceDelete, "b"),
    ] {
      let result = try await tree.guest.modify([operation], in: .shared, zone: tree.zone)
      #expect(result[0].error?.serverErrorCode == .accessDenied)
    }
    #expect(try await tree.sharedNames() == ["a", "b", "root", "share"])
  }

  @Test("A query in the shared database returns its reader's visible records, zone by zone")
  func query() async throws {
    let tree = try await SharedTree()
    var schema = try tree.server.service.schemas.schema(
      container: TestServer.container,
      environment: .development
    )
    let index = try #require(schema.recordTypes.firstIndex { $0.name == "Note" })
    schema.recordTypes[index].fields.removeAll { $0.name == "___recordID" }
    schema.recordTypes[index].fields.append(
      FieldSchema(name: "___recordID", type: .typed(.reference), indexes: [.queryable])
    )
    try await tree.server.service.schemas.setSchema(
      schema,
      container: TestServer.container,
      environment: .development
    )
    let query = RecordQuery(recordType: "Note")
    let found = try await tree.guest.query(query, in: .shared, zone: tree.zone)
    #expect(found.names.sorted() == ["a", "b", "root"])
    let wide = await #expect(throws: ErrorDictionary.self) {
      try await tree.guest.query(query, in: .shared, zone: nil)
    }
    #expect(wide?.reason == "SharedDB does not support Zone Wide queries")
  }

  @Test("A shared zone shows all its records, and lets participants write anywhere")
  func zoneWide() async throws {
    let server = try await TestServer()
    let (owner, guest) = (try await server.person("ada"), try await server.person("bob"))
    let zone = try await TestServer.zone.owned(by: owner)
    try await owner.makeZone()
    try await owner.save(.create, "x")
    try await owner.save(.create, "gone")
    try await owner.save(.forceDelete, "gone", recordType: nil)
    let share = try await owner.share(nil, with: [.invited("bob")])
    #expect(share.recordName == "cloudkit.zoneshare")
    try await guest.accept(share)
    let first = try await guest.feed(zone)
    #expect(first.names.sorted() == ["cloudkit.zoneshare", "x"])
    try await guest.save(.create, "loose", in: .shared, zone: zone)
    try await owner.save(.forceDelete, "x", recordType: nil)
    let second = try await guest.feed(zone, since: first.syncToken)
    #expect(second.names == ["loose", "x"])
    #expect(second.records.last?.item?.deleted == true)
  }

  // MARK: Cascades

  private func refer(_ holder: String, to target: String) -> RecordOperation {
    .make(
      .forceUpdate,
      holder,
      ["link": .reference(ReferenceValue(recordName: target, action: .deleteSelf))]
    )
  }

  private func expectRefusedDeletion(of name: String, in tree: SharedTree) async throws {
    let refusal = await #expect(throws: ErrorDictionary.self) {
      try await tree.guest.save(
        .forceDelete,
        name,
        recordType: nil,
        in: .shared,
        zone: tree.zone
      )
    }
    #expect(refusal?.serverErrorCode == .accessDenied)
    #expect(try await tree.guest.lookup(name, in: .shared, zone: tree.zone).recordName == name)
  }

  @Test("A participant does not delete the root of a share with a record that it refers to")
  func cascadeToRoot() async throws {
    let tree = try await SharedTree()
    let made = try await tree.guest.modify(
      [.make(.create, "n", parent: "root"), refer("root", to: "n")],
      in: .shared,
      zone: tree.zone
    )
    #expect(made.allSatisfy { $0.item != nil })
    try await expectRefusedDeletion(of: "n", in: tree)
    #expect(try await tree.owner.lookup("root").share != nil)
    #expect(try await tree.sharedNames() == ["a", "b", "n", "root", "share"])
  }

  @Test("A participant deletes no records along that are hidden or only readable for them")
  func cascadeToOthers() async throws {
    let tree = try await SharedTree()
    _ = try await tree.owner.modify([.make(.create, "other"), .make(.create, "d", parent: "other")])
    let second = try await tree.owner.share(
      "other",
      "second",
      with: [.invited("bob", .readOnly)]
    )
    try await tree.guest.accept(second)
    for holder in ["c", "d"] {
      _ = try await tree.owner.modify([refer(holder, to: "b")])[0].get()
      try await expectRefusedDeletion(of: "b", in: tree)
      _ = try await tree.owner.lookup(holder)
      try await tree.owner.save(.forceUpdate, holder, ["link": .null])
    }
    // Referrers that the participant may write are deleted too.
    _ = try await tree.owner.modify([refer("a", to: "b")])[0].get()
    try await tree.guest.save(.forceDelete, "b", recordType: nil, in: .shared, zone: tree.zone)
    #expect(try await tree.sharedNames().contains("a") == false)
  }
}
