import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Sharing")
struct SharingTests {
  // MARK: Making

  @Test("A root and its share are made in one batch, in any order")
  func oneBatch() async throws {
    let owner = try await TestServer().person()
    try await owner.makeZone()
    let root = RecordOperation(
      operationType: .create,
      record: RecordDictionary(recordName: "root", recordType: "Note", createShortGUID: true)
    )
    let share = RecordOperation(
      operationType: .create,
      record: RecordDictionary(
        recordType: "cloudKit.share",
        fields: ["cloudkit.title": FieldValue(.string("Title"))],
        sharing: ShareDictionary(forRecord: SharedRootDictionary(recordName: "root"))
      )
    )
    let results = try await owner.modify([share, root]).map { try $0.get() }
    let guid = try #require(results[1].shortGUID)
    #expect(results[0].recordType == "cloudkit.share")
    #expect(results[0].shortGUID == guid)
    #expect(results[1].share?.recordName == results[0].recordName)
    #expect(results[0].content("cloudkit.title") == .string("Title"))
    let user = try await owner.userRecordName
    let sharing = try #require(results[0].sharing)
    #expect(sharing.publicPermission == ParticipantPermission.none)
    #expect(sharing.participants?.count == 1)
    #expect(sharing.owner?.userIdentity?.userRecordName == user)
    #expect(sharing.owner?.type == .owner)
    #expect(sharing.owner?.acceptanceStatus == .accepted)
    #expect(sharing.owner?.permission == .readWrite)
    #expect(sharing.currentUserParticipant == sharing.owner)
  }

  @Test("The short ID belongs to the root: it outlives the share")
  func stableGUID() async throws {
    let tree = try await SharedTree()
    try await tree.owner.save(.forceDelete, "share", recordType: nil)
    let root = try await tree.owner.lookup("root")
    #expect(root.share == nil)
    #expect(root.shortGUID == tree.share.shortGUID)
    let again = try await tree.owner.share("root", "another")
    #expect(again.shortGUID == tree.share.shortGUID)
  }

  @Test("The root of a share is as its owner knows it, or there is a conflict")
  func rootTag() async throws {
    let owner = try await TestServer().person()
    try await owner.makeZone()
    let root = try await owner.save(.create, "root")
    try await owner.save(.update, "root", ["n": .int64(1)], tag: root.recordChangeTag)
    func share(_ root: SharedRootDictionary?) async throws -> ErrorDictionary? {
      let operation = RecordOperation(
        operationType: .create,
        record: RecordDictionary(
          recordName: "share",
          recordType: "cloudkit.share",
          sharing: ShareDictionary(forRecord: root, publicPermission: .readOnly)
        )
      )
      return try await owner.modify([operation])[0].error
    }
    let stale = SharedRootDictionary(recordName: "root", recordChangeTag: root.recordChangeTag)
    #expect(try await share(stale)?.serverErrorCode == .conflict)
    let missing = try await share(SharedRootDictionary(recordName: "no"))
    #expect(missing?.serverErrorCode == .notFound)
    #expect(missing?.reason == "Cannot share - no such record exists to share")
    #expect(try await share(nil)?.serverErrorCode == .badRequest)
    #expect(try await share(SharedRootDictionary(recordName: "root")) == nil)
  }

  @Test("A record is in one share at most", arguments: ["root", "a", "above"])
  func oneShare(name: String) async throws {
    let tree = try await SharedTree()
    if name == "above" {
      try await tree.owner.save(.create, "above")
      _ = try await tree.owner.modify([.make(.forceUpdate, "root", parent: "above")])
    }
    await #expect(throws: ErrorDictionary.self) { try await tree.owner.share(name, "second") }
    #expect(try await tree.owner.lookup("root").share?.recordName == "share")
  }

  @Test("A tree that holds another share's root stays out of shares")
  func rootBelowShare() async throws {
    let tree = try await SharedTree()
    try await tree.owner.save(.create, "other")
    try await tree.owner.share("other", "second")
    let moved = try await tree.owner.modify([.make(.forceUpdate, "other", parent: "a")])
    #expect(moved[0].error?.serverErrorCode == .badRequest)
    #expect(try await tree.sharedNames() == ["a", "b", "root", "share"])
  }

  @Test("A zone is shared as a whole or record by record, not both")
  func exclusive() async throws {
    let tree = try await SharedTree()
    await #expect(throws: ErrorDictionary.self) { try await tree.owner.share(nil) }
    let other = try await tree.server.person("cleo")
    try await other.makeZone()
    try await other.save(.create, "root")
    try await other.share(nil)
    await #expect(throws: ErrorDictionary.self) { try await other.share("root") }
  }

  @Test("Only custom zones of the private database have shares")
  func places() async throws {
    let owner = try await TestServer().person()
    try await owner.save(.create, "root", zone: nil)
    await #expect(throws: ErrorDictionary.self) {
      try await owner.share("root", zone: .defaultZone)
    }
    let wish = RecordOperation(
      operationType: .create,
      record: RecordDictionary(recordName: "x", recordType: "Note", createShortGUID: true)
    )
    let result = try await owner.modify([wish], in: .public, zone: nil)
    #expect(result[0].error?.serverErrorCode == .badRequest)
  }

  // MARK: Participants

  @Test("Participants are found by address, and their part in it is the server's word")
  func participants() async throws {
    let tree = try await SharedTree(accepts: false)
    let bob = try await tree.guest.userRecordName
    let invited = try #require(tree.share.sharing?.participants?.last)
    #expect(invited.userIdentity?.userRecordName == bob)
    #expect(invited.acceptanceStatus == .invited)
    #expect(invited.participantId != nil)
    // A client cannot accept for somebody else.
    var claim = invited
    claim.acceptanceStatus = .accepted
    let saved = try await tree.owner.updateShare(tree.share, participants: [claim])
    #expect(saved.sharing?.participants?.map(\.acceptanceStatus) == [.accepted, .invited])
    #expect(saved.sharing?.participants?.first?.type == .owner)
    #expect(saved.sharing?.participants?.last?.participantId == invited.participantId)
    // Who is missing in the list is removed.
    let emptied = try await tree.owner.updateShare(saved, participants: [])
    #expect(emptied.sharing?.participants?.count == 1)
    await #expect(throws: ErrorDictionary.self) { try await tree.guest.accept(tree.share) }
  }

  @Test("A share has at most a hundred participants beside its owner", arguments: [100, 101])
  func participantLimit(count: Int) async throws {
    let owner = try await TestServer().person()
    try await owner.makeZone()
    try await owner.save(.create, "root")
    let people = (0..<count).map { ShareParticipant.invited("p\($0)") }
    if count <= 100 {
      let share = try await owner.share("root", with: people)
      #expect(share.sharing?.participants?.count == 101)
    } else {
      await #expect(throws: ErrorDictionary.self) { try await owner.share("root", with: people) }
    }
  }

  @Test("Opening a share to all removes open invitations; closing it removes everybody")
  func publicPermission() async throws {
    let tree = try await SharedTree()
    _ = try await tree.server.person("cleo")
    let stranger = try await tree.server.person("dan")
    var share = try await tree.owner.lookup("share")
    let people = try #require(share.sharing?.participants) + [.invited("cleo")]
    share = try await tree.owner.updateShare(share, participants: people)
    share = try await tree.owner.updateShare(share, publicPermission: .readOnly)
    #expect(share.sharing?.participants?.map(\.acceptanceStatus) == [.accepted, .accepted])
    let joined = try await stranger.accept(share)
    #expect(joined.participantType == .publicUser)
    #expect(joined.participantPermission == .readOnly)
    #expect(try await stranger.feed(tree.zone).names.sorted() == ["a", "b", "root", "share"])
    share = try await tree.owner.lookup("share")
    share = try await tree.owner.updateShare(share, publicPermission: ParticipantPermission.none)
    #expect(share.sharing?.participants?.count == 1)
    for person in [stranger, tree.guest] {
      await #expect(throws: ErrorDictionary.self) { try await person.feed(tree.zone) }
      await #expect(throws: ErrorDictionary.self) { try await person.resolve(share.shortGUID) }
    }
  }

  @Test("Who joined by the link does as the link allows, from one moment to the next")
  func publicUsersFollow() async throws {
    let tree = try await SharedTree(accepts: false)
    var share = try await tree.owner.updateShare(tree.share, publicPermission: .readWrite)
    let stranger = try await tree.server.person("dan")
    try await stranger.accept(share)
    try await stranger.save(.forceUpdate, "a", in: .shared, zone: tree.zone)
    share = try await tree.owner.lookup("share")
    try await tree.owner.updateShare(share, publicPermission: .readOnly)
    await #expect(throws: ErrorDictionary.self) {
      try await stranger.save(.forceUpdate, "a", in: .shared, zone: tree.zone)
    }
    // They see the owner and themselves, nobody else.
    let seen = try await stranger.lookup("share", in: .shared, zone: tree.zone)
    #expect(seen.sharing?.participants?.map(\.type) == [.owner, .publicUser])
    #expect(seen.sharing?.owner?.userIdentity?.lookupInfo == nil)
  }

  // MARK: Resolving

  @Test("A short ID tells each caller what is theirs to know")
  func resolve() async throws {
    let tree = try await SharedTree(.readOnly, accepts: false)
    let guid = tree.share.shortGUID
    let mine = try await tree.owner.resolve(guid)
    #expect(mine.databaseScope == "PRIVATE")
    #expect(mine.participantType == .owner)
    let theirs = try await tree.guest.resolve(guid, root: true)
    #expect(theirs.databaseScope == "SHARED")
    #expect(theirs.participantType == .user)
    #expect(theirs.participantStatus == .invited)
    #expect(theirs.participantPermission == .readOnly)
    #expect(theirs.containerIdentifier == TestServer.container)
    #expect(theirs.environment == "development")
    #expect(theirs.zoneID.ownerRecordName == tree.zone.ownerRecordName)
    #expect(theirs.rootRecordName == "root")
    #expect(theirs.rootRecord?.content("title") == .string("Root"))
    #expect(theirs.ownerIdentity.nameComponents?.givenName == "Ada")
    #expect(theirs.share.recordName == "share")
    #expect(theirs.webpageURL == "http://127.0.0.1:8080/share/\(guid ?? "")")
    let stranger = try await tree.server.person("dan")
    let hidden = await #expect(throws: ErrorDictionary.self) { try await stranger.resolve(guid) }
    let absent = await #expect(throws: ErrorDictionary.self) { try await stranger.resolve("0no") }
    #expect(hidden == absent)
    let visitor = await #expect(throws: ErrorDictionary.self) {
      try await tree.server.visitor.resolve(guid)
    }
    #expect(visitor?.serverErrorCode == .authenticationRequired)
    #expect(visitor?.redirectURL != nil)
  }

  @Test("A share that is open to all resolves without a sign-in")
  func resolveSignedOut() async throws {
    let tree = try await SharedTree(accepts: false)
    try await tree.owner.updateShare(tree.share, publicPermission: .readOnly)
    let found = try await tree.server.visitor.resolve(tree.share.shortGUID, root: true)
    #expect(found.participantType == .publicUser)
    #expect(found.rootRecord?.recordName == "root")
    #expect(found.requireAppleLogin == false)
    #expect(found.share.sharing?.participants?.map(\.type) == [.owner])
  }

  // MARK: The shared database

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
    // Twice is fine.
    #expect(try await tree.guest.accept(tree.share).participantStatus == .accepted)
    #expect(try await zones().map(\.zoneID.ownerRecordName) == [tree.zone.ownerRecordName])
    let after = try await tree.guest.sharedChanges(since: before.syncToken)
    #expect(after.zones.map { $0.item?.zoneID.zoneName } == ["notes"])
    #expect(try await tree.sharedNames() == ["a", "b", "root", "share"])
    #expect(try await tree.guest.lookup("b", in: .shared, zone: tree.zone).parent != nil)
    let mine = try await tree.guest.lookup("share", in: .shared, zone: tree.zone)
    #expect(mine.sharing?.currentUserParticipant?.acceptanceStatus == .accepted)
  }

  @Test("What is not shared is as good as absent: looked up, changed, deleted, referred to")
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

  @Test("A participant writes where they may, and only below what is shared")
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

  @Test("Who may only read writes nothing")
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

  @Test("A query in the shared database sees what its reader sees, zone by zone")
  func query() async throws {
    let tree = try await SharedTree()
    var schema = try tree.server.service.schema(
      container: TestServer.container,
      environment: .development
    )
    let index = try #require(schema.recordTypes.firstIndex { $0.name == "Note" })
    schema.recordTypes[index].fields.removeAll { $0.name == "___recordID" }
    schema.recordTypes[index].fields.append(
      FieldSchema(name: "___recordID", type: .typed(.reference), indexes: [.queryable])
    )
    try await tree.server.service.setSchema(
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

  @Test("A shared zone shows everything in it, and lets participants write anywhere")
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

  // MARK: Leaving

  @Test("A participant who deletes the share leaves it; the others stay")
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
    "A share that is stopped, or loses its root, is gone for its participants",
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

  @Test("A zone that is not shared any more is gone for those who saw it all")
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

  // MARK: The participant's feed

  @Test("What comes below a shared record appears, what goes from there disappears")
  func moving() async throws {
    let tree = try await SharedTree()
    try await tree.owner.save(.create, "d")
    _ = try await tree.owner.modify([.make(.create, "e", parent: "d")])
    let start = try await tree.guest.feed(tree.zone)
    // d and e below it come in.
    _ = try await tree.owner.modify([.make(.forceUpdate, "d", parent: "root")])
    let came = try await tree.guest.feed(tree.zone, since: start.syncToken)
    #expect(came.names == ["d", "e"])
    // a goes out, with b below it.
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

  @Test("Commits elsewhere in the zone leave no trace in a participant's feed")
  func noTrace() async throws {
    let tree = try await SharedTree()
    let database = try await tree.guest.sharedChanges()
    let feed = try await tree.guest.feed(tree.zone)
    try await tree.owner.save(.forceUpdate, "c", ["n": .int64(1)])
    try await tree.owner.save(.forceDelete, "c", recordType: nil)
    #expect(try await tree.guest.sharedChanges(since: database.syncToken).zones.isEmpty)
    #expect(try await tree.guest.feed(tree.zone, since: feed.syncToken).names.isEmpty)
  }

  @Test("Of two shares in one zone, leaving one takes its records away and leaves the others")
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

  @Test("Newest first, a participant's feed is the same feed turned round", arguments: [1, 2, 100])
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

  @Test("Somebody invited by an address sees their invitation before they accept")
  func invitedByAddress() async throws {
    let server = try await TestServer()
    let owner = try await server.person()
    try await owner.makeZone()
    try await owner.save(.create, "root")
    // Nobody of that address has an account yet.
    let share = try await owner.share("root", with: [.invited("late")])
    #expect(share.sharing?.participants?.last?.userIdentity?.userRecordName == nil)
    let late = try await server.person("late")
    let found = try await late.resolve(share.shortGUID)
    let me = try #require(found.share.sharing?.currentUserParticipant)
    #expect(me.acceptanceStatus == .invited)
    #expect(me.permission == .readWrite)
    #expect(me.userIdentity?.lookupInfo?.emailAddress == "late@example.com")
    #expect(found.participantStatus == .invited)
    #expect(found.potentialMatchList?.map(\.participantId) == [try #require(me.participantId)])
    let accepted = try await late.accept(share)
    #expect(accepted.share.sharing?.currentUserParticipant?.acceptanceStatus == .accepted)
    #expect(accepted.share.sharing?.currentUserParticipant?.participantId == me.participantId)
  }
}
