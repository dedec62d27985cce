import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("A participant's feed", .everyEngine)
struct ParticipantFeedTests {
  @Test("Records added below a shared record appear, and removed ones disappear")
  func moving() async throws {
    let tree = try await SharedTree()
    try await tree.owner.save(.create, "d")
    _ = try await tree.owner.modify([.make(.create, "e", parent: "d")])
    let start = try await tree.guest.feed(tree.zone)
    // d and e below it are added.
    _ = try await tree.owner.modify([.make(.forceUpdate, "d", parent: "root")])
    let came = try await tree.guest.feed(tree.zone, since: start.syncToken)
    #expect(came.names == ["d", "e"])
    // a is removed, with b below it.
    let detach = RecordOperation(
      operationType: .forceUpdate,
      record: {
        var record = RecordDictionary(recordName: "a", recordType: "Note")
        record.removesParent = true
        return record
      }()
    )
    _ = try await tree.owner.modify([detach])
    let went = try await tree.guest.feed(tree.zone, since: came.syncToken)
    #expect(went.names == ["a", "b"])
    #expect(went.records.allSatisfy { $0.item?.deleted == true && $0.item?.fields == nil })
    #expect(try await tree.sharedNames() == ["d", "e", "root", "share"])
  }

  @Test("Commits elsewhere in the zone are not visible in a participant's feed")
  func noTrace() async throws {
    let tree = try await SharedTree()
    let database = try await tree.guest.sharedChanges()
    let feed = try await tree.guest.feed(tree.zone)
    try await tree.owner.save(.forceUpdate, "c", ["n": .int64(1)])
    try await tree.owner.save(.forceDelete, "c", recordType: nil)
    #expect(try await tree.guest.sharedChanges(since: database.syncToken).zones.isEmpty)
    #expect(try await tree.guest.feed(tree.zone, since: feed.syncToken).names.isEmpty)
  }

  @Test("Leaving one of two shares in a zone removes its records and keeps the others")
  func twoShares() async throws {
    let tree = try await SharedTree()
    try await tree.owner.save(.create, "two")
    let second = try await tree.owner.share("two", "second", with: [.invited("bob")])
    let start = try await tree.guest.feed(tree.zone)
    try await tree.guest.accept(second)
    let joined = try await tree.guest.feed(tree.zone, since: start.syncToken, limit: 1)
    #expect(joined.moreComing == true)
    let rest = try await tree.guest.feed(tree.zone, since: joined.syncToken)
    #expect((joined.names + rest.names).sorted() == ["second", "two"])
    _ = try await tree.guest.modify(
      [.make(.forceDelete, "share")],
      in: .shared,
      zone: tree.zone
    )
    let left = try await tree.guest.feed(tree.zone, since: rest.syncToken)
    #expect(left.names.sorted() == ["a", "b", "root", "share"])
    #expect(left.records.allSatisfy { $0.item?.deleted == true })
    #expect(try await tree.sharedNames() == ["second", "two"])
  }

  @Test("Newest first, a participant's feed is the reversed feed", arguments: [1, 2, 100])
  func reverse(limit: Int) async throws {
    let tree = try await SharedTree()
    try await tree.owner.save(.forceUpdate, "a", ["n": .int64(1)])
    let forward = try await tree.guest.feed(tree.zone).names
    var backward: [String] = []
    var token: String?
    while true {
      let page = try await tree.guest.feed(tree.zone, since: token, limit: limit, reverse: true)
      backward += page.names
      token = page.syncToken
      guard page.moreComing == true else { break }
    }
    #expect(backward == forward.reversed())
    #expect(try await tree.guest.feed(tree.zone, since: token).names.isEmpty)
  }
}
