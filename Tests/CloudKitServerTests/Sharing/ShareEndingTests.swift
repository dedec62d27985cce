import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Ending shares", .everyEngine)
struct ShareEndingTests {
  @Test("A participant who deletes the share leaves it, and the others stay")
  func leaving() async throws {
    let tree = try await SharedTree()
    let before = try await tree.guest.sharedChanges()
    let feed = try await tree.guest.feed(tree.zone)
    let left = try await tree.guest.modify(
      [.make(.forceDelete, "share")],
      in: .shared,
      zone: tree.zone
    )
    #expect(left[0].item?.deleted == true)
    let share = try await tree.owner.lookup("share")
    #expect(share.sharing?.participants?.count == 1)
    let after = try await tree.guest.sharedChanges(since: before.syncToken)
    #expect(after.zones.map { $0.item?.deleted } == [true])
    let closed = await #expect(throws: ErrorDictionary.self) {
      try await tree.guest.feed(tree.zone, since: feed.syncToken)
    }
    #expect(closed?.serverErrorCode == .zoneNotFound)
  }

  @Test(
    "A share that is stopped, or loses its root, is deleted for its participants",
    arguments: ["share", "root"]
  )
  func stopping(deleted: String) async throws {
    let tree = try await SharedTree()
    let before = try await tree.guest.sharedChanges()
    try await tree.owner.save(.forceDelete, deleted, recordType: nil)
    await #expect(throws: ErrorDictionary.self) { try await tree.owner.lookup("share") }
    let after = try await tree.guest.sharedChanges(since: before.syncToken)
    #expect(after.zones.map { $0.item?.deleted } == [true])
    await #expect(throws: ErrorDictionary.self) {
      try await tree.guest.lookup("a", in: .shared, zone: tree.zone)
    }
    #expect(try await tree.owner.lookup("b").share == nil)
    if deleted == "share" { #expect(try await tree.owner.lookup("root").share == nil) }
  }

  @Test("A zone that is no longer shared is deleted for its participants")
  func zoneStopped() async throws {
    let server = try await TestServer()
    let (owner, guest) = (try await server.person("ada"), try await server.person("bob"))
    let zone = try await TestServer.zone.owned(by: owner)
    try await owner.makeZone()
    try await owner.save(.create, "x")
    let share = try await owner.share(nil, with: [.invited("bob")])
    try await guest.accept(share)
    let before = try await guest.sharedChanges()
    try await owner.save(.forceDelete, "cloudkit.zoneshare", recordType: nil)
    let after = try await guest.sharedChanges(since: before.syncToken)
    #expect(after.zones.map { $0.item?.deleted } == [true])
    await #expect(throws: ErrorDictionary.self) {
      try await guest.lookup("x", in: .shared, zone: zone)
    }
    #expect(try await owner.changes().names.contains("x"))
  }

  @Test("A replacement that does not mention the parent leaves the record in its share")
  func replacing() async throws {
    let tree = try await SharedTree()
    try await tree.owner.save(.forceReplace, "a", ["n": .int64(1)])
    #expect(try await tree.owner.lookup("a").parent?.recordName == "root")
    #expect(try await tree.sharedNames() == ["a", "b", "root", "share"])
  }

  @Test("Deleting the zone ends its shares")
  func zoneDeleted() async throws {
    let tree = try await SharedTree()
    let before = try await tree.guest.sharedChanges()
    try await tree.owner.deleteZone()
    try await tree.owner.makeZone()
    let after = try await tree.guest.sharedChanges(since: before.syncToken)
    #expect(after.zones.map { $0.item?.deleted } == [true])
    await #expect(throws: ErrorDictionary.self) { try await tree.guest.feed(tree.zone) }
  }

  @Test("A deletion together with a save of a share's root reads none of its members")
  func deletionBesideRoot() async throws {
    let tree = try await SharedTree(limits: { $0.recordsPerShareChange = 4 })
    for name in ["d", "e", "f", "g"] {
      _ = try await tree.owner.modify([.make(.create, name, parent: "root")])
    }
    let results = try await tree.owner.modify([
      .make(.forceUpdate, "root", ["n": .int64(1)]), .make(.forceDelete, "c", recordType: nil),
    ])
    #expect(results.compactMap(\.error).isEmpty)
    #expect(try await tree.sharedNames() == ["a", "b", "d", "e", "f", "g", "root", "share"])
  }

  @Test(
    "A share that has grown beyond what one request may move can be ended",
    arguments: ["share", "root"]
  )
  func grown(deleted: String) async throws {
    let tree = try await SharedTree(limits: { $0.recordsPerShareChange = 4 })
    for name in ["d", "e", "f", "g"] {
      _ = try await tree.owner.modify([.make(.create, name, parent: "root")])
    }
    // A batch that saves too is refused, and its client sends the deletion alone.
    let refused = await #expect(throws: ErrorDictionary.self) {
      try await tree.owner.modify([
        .make(.forceUpdate, "c", ["n": .int64(1)]),
        .make(.forceDelete, deleted, recordType: nil),
      ])
    }
    #expect(refused?.serverErrorCode == .badRequest)
    try await tree.owner.save(.forceDelete, deleted, recordType: nil)
    await #expect(throws: ErrorDictionary.self) { try await tree.owner.lookup("share") }
    #expect(try await tree.owner.lookup("g").share == nil)
    await #expect(throws: ErrorDictionary.self) {
      try await tree.guest.lookup("g", in: .shared, zone: tree.zone)
    }
  }

  @Test("The records that leave shares with a request that only deletes have a limit of their own")
  func tooLarge() async throws {
    let tree = try await SharedTree(limits: { $0.recordsPerShareEnding = 2 })
    let refused = await #expect(throws: ErrorDictionary.self) {
      try await tree.owner.save(.forceDelete, "share", recordType: nil)
    }
    #expect(refused?.serverErrorCode == .badRequest)
    #expect(try await tree.sharedNames() == ["a", "b", "root", "share"])
  }

  @Test("A share whose root is deleted together with its failed save leaves no members")
  func rootThatIsTakenAlong() async throws {
    let tree = try await SharedTree()
    let stale = try await tree.owner.lookup("root").recordChangeTag
    let reference = ReferenceValue(recordName: "c", action: .deleteSelf)
    try await tree.owner.save(.forceUpdate, "root", ["ref": .reference(reference)])
    let results = try await tree.owner.modify(
      [
        .make(.update, "root", ["title": .string("late")], tag: stale),
        .make(.forceDelete, "c", recordType: nil),
      ],
      atomic: false
    )
    #expect(results[0].error?.serverErrorCode == .conflict)
    #expect(results[1].item?.deleted == true)
    await #expect(throws: ErrorDictionary.self) { try await tree.owner.lookup("root") }
    await #expect(throws: ErrorDictionary.self) { try await tree.owner.lookup("share") }
    // A later share of the same name is another one.
    _ = try await tree.owner.modify([.make(.create, "d")])
    try await tree.guest.accept(try await tree.owner.share("d", with: [.invited("bob")]))
    #expect(try await tree.sharedNames() == ["d", "share"])
  }
}
