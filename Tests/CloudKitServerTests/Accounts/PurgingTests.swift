import CloudKitWebServices
import Foundation
import Synchronization
import Testing

@testable import CloudKitServer

@Suite("Purged accounts", .everyEngine)
struct PurgingTests {
  private func purge(_ name: String, on server: TestServer) async throws {
    try await server.service.accounts.delete(name, purgesNow: true)
  }

  @Test("Participants of a purged owner see the zone's deletion, and nothing of it is left")
  func purgedOwner() async throws {
    let tree = try await SharedTree()
    let before = try await tree.guest.sharedChanges()
    #expect(before.zones.compactMap(\.item).map(\.zoneID.zoneName) == ["notes"])
    try await purge("ada", on: tree.server)

    let after = try await tree.guest.sharedChanges(since: before.syncToken)
    let zone = try #require(after.zones.first?.item)
    #expect(zone.deleted == true)
    #expect(zone.zoneID.ownerRecordName == tree.zone.ownerRecordName)
    #expect(zone.zoneID.zoneName == tree.zone.zoneName)
    #expect(try await tree.guest.sharedChanges(since: after.syncToken).zones.isEmpty)
    #expect(try await tree.guest.sharedChanges().zones.isEmpty)
    await #expect(throws: ErrorDictionary.self) { try await tree.guest.feed(tree.zone) }
    await #expect(throws: ErrorDictionary.self) {
      try await tree.guest.lookup("a", in: .shared, zone: tree.zone)
    }
    await #expect(throws: ErrorDictionary.self) {
      try await tree.guest.resolve(tree.share.shortGUID)
    }
    await #expect(throws: ErrorDictionary.self) { try await tree.guest.accept(tree.share) }
  }

  @Test("An account whose purge has begun cannot be restored, and the next purge ends the removal")
  func begunPurge() async throws {
    let flaky = Mutex<FlakyStorage?>(nil)
    let server = try await TestServer(storage: { base in
      let storage = FlakyStorage(base)
      flaky.withLock { $0 = storage }
      return storage
    })
    let person = try await server.person()
    try await person.makeZone()
    try await person.save(.create, "r", ["n": .int64(1)])
    let service = server.service
    try await service.accounts.delete("ada")
    server.clock.advance(seconds: 31 * 24 * 3600)
    // The commit that removes the database fails.
    let storage = try #require(flaky.withLock { $0 })
    storage.interpose { batch, _ in
      guard batch.erasure != nil else { return false }
      storage.failNextCommit(.before)
      return true
    }
    await #expect(throws: (any Error).self) { try await service.housekeep() }
    let refusal = await #expect(throws: AdministrationError.self) {
      try await service.accounts.restore("ada")
    }
    #expect(refusal?.description.contains("are being removed") == true)
    #expect(try service.accounts.descriptions().map(\.userName) == ["ada"])
    try await service.housekeep()
    #expect(try service.accounts.descriptions().isEmpty)
  }

  @Test(
    "An account that is not deleted keeps its data, also where a purge of it was decided before"
  )
  func restoredBeforePurge() async throws {
    let server = try await TestServer()
    let person = try await server.person()
    try await person.makeZone()
    try await person.save(.create, "r", ["n": .int64(1)])
    let account = try server.service.storage.account(named: "ada")
    try await server.service.purges.purge(account.id)
    #expect(try await person.lookup("r").content("n") == .int64(1))
  }

  @Test("Links to a purged owner's shares are kept as long as feeds, and no longer")
  func links() async throws {
    let tree = try await SharedTree()
    let before = try await tree.guest.sharedChanges()
    try await purge("ada", on: tree.server)
    tree.server.clock.advance(seconds: 10 * 24 * 3600)
    try await tree.server.service.housekeep()
    let guest = try await tree.server.person("bob")
    let late = try await guest.sharedChanges(since: before.syncToken)
    #expect(late.zones.first?.item?.deleted == true)
    tree.server.clock.advance(seconds: 81 * 24 * 3600)
    try await tree.server.service.housekeep()
    let again = try await tree.server.person("bob")
    #expect(try await again.sharedChanges().zones.isEmpty)
  }

  @Test(
    "A participant who returns after the links to a purged zone are removed has an expired token"
  )
  func longAway() async throws {
    let tree = try await SharedTree()
    let before = try await tree.guest.sharedChanges()
    try await purge("ada", on: tree.server)
    tree.server.clock.advance(seconds: 91 * 24 * 3600)
    try await tree.server.service.housekeep()
    let late = try await tree.server.person("bob").extended
    let error = await #expect(throws: ErrorDictionary.self) {
      try await late.sharedChanges(since: before.syncToken)
    }
    #expect(error?.extension?.code == .changeTokenExpired)
    #expect(try await late.sharedChanges().zones.isEmpty)
  }

  @Test("A purged participant is removed from every share, and the owner's feed reports it")
  func purgedParticipant() async throws {
    let tree = try await SharedTree()
    let before = try await tree.owner.changes()
    #expect(tree.share.sharing?.participants?.count == 2)
    try await purge("bob", on: tree.server)

    let after = try await tree.owner.changes(since: before.syncToken)
    #expect(after.names == ["share"])
    let share = try await tree.owner.lookup("share")
    #expect(share.sharing?.participants?.map(\.type) == [.owner])
    #expect(share.recordChangeTag != tree.share.recordChangeTag)
    #expect(try await tree.owner.lookup("root").content("title") == .string("Root"))

    // The share works for the next invited user; a new account of the name is another user.
    let next = try await tree.server.person("bob")
    await #expect(throws: ErrorDictionary.self) { try await next.feed(tree.zone) }
    #expect(try await next.sharedChanges().zones.isEmpty)
    try await tree.owner.updateShare(share, participants: [.invited("bob")])
    try await next.accept(tree.share)
    #expect(try await next.feed(tree.zone).names.sorted() == ["a", "b", "root", "share"])
  }

  @Test("Other participants of the share see that a user was purged")
  func others() async throws {
    let tree = try await SharedTree()
    let cleo = try await tree.server.person("cleo")
    let share = try await tree.owner.lookup("share")
    try await tree.owner.updateShare(share, participants: [.invited("bob"), .invited("cleo")])
    try await cleo.accept(tree.share)
    let before = try await cleo.feed(tree.zone)
    try await purge("bob", on: tree.server)
    let after = try await cleo.feed(tree.zone, since: before.syncToken)
    #expect(after.names == ["share"])
    let seen = try #require(after.records.first?.item?.sharing?.participants)
    #expect(seen.count == 2)
  }

  @Test("An interrupted purge is finished by the next one, and a second one changes nothing")
  func again() async throws {
    let tree = try await SharedTree()
    let service = tree.server.service
    try await service.accounts.delete("ada")
    tree.server.clock.advance(seconds: 31 * 24 * 3600)
    try await service.housekeep()
    try await service.housekeep()
    #expect(try service.accounts.descriptions().map(\.userName) == ["bob"])
  }

  @Test("Subscriptions of a purged user to the public database are removed")
  func publicSubscriptions() async throws {
    let server = try await TestServer()
    let person = try await server.person("ada")
    try await person.save(.create, "p", ["n": .int64(1)], in: .public, zone: nil)
    let body = Data(
      (#"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"s","#
        + #""subscriptionType":"query","query":{"recordType":"Note"},"#
        + #""firesOn":["create"]}}]}"#).utf8
    )
    #expect(await person.send(.modifySubscriptions, body, in: .public).status == 200)
    let user = try await person.userRecordName
    let storage = server.service.storage
    let id = try storage.partition(
      PartitionKey(
        container: TestServer.container,
        environment: .development,
        scope: .public,
        owner: ""
      )
    )
    #expect(try storage.read { try $0.subscriptions(in: id, user: user) }.count == 1)
    try await purge("ada", on: server)
    #expect(try storage.read { try $0.subscriptions(in: id, user: user) }.isEmpty)
  }
}
