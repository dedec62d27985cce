import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Creating shares", .everyEngine)
struct ShareMakingTests {
  @Test("A root and its share are created in one batch, in any order")
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

  @Test("Members of shares in the save of a root change neither the order nor its fields")
  func strayMembers() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    try await person.save(.create, "root", ["title": .string("old")])
    let share = RecordOperation(
      operationType: .create,
      record: RecordDictionary(
        recordName: "share",
        recordType: ShareDictionary.recordType,
        sharing: ShareDictionary(forRecord: SharedRootDictionary(recordName: "root"))
      )
    )
    var root = RecordOperation.make(.forceUpdate, "root", ["title": .string("new")])
    root.record.sharing = ShareDictionary(publicPermission: ParticipantPermission.none)
    let saved = try await person.modify([share, root]).map { try $0.get() }
    let stored = try await person.lookup("root")
    #expect(stored.content("title") == .string("new"))
    #expect(stored.recordChangeTag == saved[1].recordChangeTag)
    #expect(stored.share?.recordName == "share")
  }

  @Test("A root that requests its short ID first is shared under it later, as documented")
  func twoSteps() async throws {
    let server = try await TestServer()
    let owner = try await server.person()
    let guest = try await server.person("bob")
    try await owner.makeZone()
    let wish = RecordOperation(
      operationType: .create,
      record: RecordDictionary(recordName: "root", recordType: "Note", createShortGUID: true)
    )
    let root = try await owner.modify([wish])[0].get()
    let guid = try #require(root.shortGUID)
    // Not shared yet: the ID cannot be resolved.
    await #expect(throws: ErrorDictionary.self) { try await owner.resolve(guid) }
    let share = RecordOperation(
      operationType: .create,
      record: RecordDictionary(
        recordName: "share",
        recordType: "cloudkit.share",
        sharing: ShareDictionary(
          forRecord: SharedRootDictionary(
            recordName: "root",
            recordChangeTag: root.recordChangeTag
          ),
          participants: [.invited("bob")]
        )
      )
    )
    #expect(try await owner.modify([share])[0].get().shortGUID == guid)
    #expect(try await owner.resolve(guid).rootRecordName == "root")
    #expect(try await guest.resolve(guid, .acceptShares).participantStatus == .accepted)
    let page = await server.send("GET", "/share/\(guid)")
    #expect(page.status == 200)
  }

  @Test("A root has a reference to its share as long as there is one")
  func queryByShare() async throws {
    let tree = try await SharedTree()
    func roots(_ share: String) async throws -> [String] {
      let filter = QueryFilter(
        comparator: .equals,
        systemFieldName: "share",
        fieldValue: FieldValue(.reference(ReferenceValue(recordName: share)))
      )
      let page = try await tree.owner.query(RecordQuery(recordType: "Note", filterBy: [filter]))
      return page.records.compactMap { $0.item?.recordName }
    }
    #expect(try await roots("share") == ["root"])
    try await tree.owner.save(.create, "two")
    try await tree.owner.share("two", "second")
    #expect(try await roots("second") == ["two"])
    try await tree.owner.save(.forceDelete, "share", recordType: nil)
    #expect(try await roots("share") == [])
    #expect(try await roots("second") == ["two"])
  }

  @Test("The short ID belongs to the root and survives the share")
  func stableGUID() async throws {
    let tree = try await SharedTree()
    try await tree.owner.save(.forceDelete, "share", recordType: nil)
    let root = try await tree.owner.lookup("root")
    #expect(root.share == nil)
    #expect(root.shortGUID == tree.share.shortGUID)
    let again = try await tree.owner.share("root", "another")
    #expect(again.shortGUID == tree.share.shortGUID)
  }

  @Test("A root with another tag than its owner's is a conflict")
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

  @Test("A tree that contains another share's root cannot be shared")
  func rootBelowShare() async throws {
    let tree = try await SharedTree()
    try await tree.owner.save(.create, "other")
    try await tree.owner.share("other", "second")
    let moved = try await tree.owner.modify([.make(.forceUpdate, "other", parent: "a")])
    #expect(moved[0].error?.serverErrorCode == .badRequest)
    #expect(try await tree.sharedNames() == ["a", "b", "root", "share"])
  }

  @Test("A deep tree is shared without one stack frame per level")
  func deepTree() async throws {
    let depth = 4000
    let owner = try await TestServer { limits in
      limits.parentDepth = 20_000
      limits.itemsPerRequest = depth
    }.person()
    try await owner.makeZone()
    func name(_ level: Int) -> String { "n\(1_000_000 - level)" }
    let results = try await owner.modify(
      (0..<depth).map { level in
        .make(.create, name(level), parent: level == 0 ? nil : name(level - 1))
      }
    )
    #expect(results.allSatisfy { $0.error == nil })
    let share = try await owner.share(name(0))
    #expect(share.recordName == "share")
  }

  @Test("A record has a limited number of ancestors", arguments: [-1, 0, 1])
  func depthLimit(over: Int) async throws {
    let owner = try await TestServer(limits: { $0.parentDepth = 6 }).person().extended
    try await owner.makeZone()
    // In one batch and in two: ancestors are found in the batch and in the storage.
    for (prefix, split) in [("a", 7 + over), ("b", 3)] {
      let operations = (0..<(7 + over)).map { level in
        RecordOperation.make(
          .create,
          "\(prefix)\(level)",
          parent: level == 0 ? nil : "\(prefix)\(level - 1)"
        )
      }
      var results = try await owner.modify(Array(operations.prefix(split)))
      if split < operations.count {
        results += try await owner.modify(Array(operations.dropFirst(split)))
      }
      let errors = results.compactMap(\.error).filter { $0.serverErrorCode != .atomicError }
      #expect(errors.map(\.extension?.code) == (over > 0 ? [.limitExceeded] : []))
    }
  }

  @Test("The index entries of a share are updated when a user joins it")
  func indexedShare() async throws {
    let server = try await TestServer()
    let (owner, guest) = (try await server.person("ada"), try await server.person("bob"))
    try await owner.makeZone()
    try await owner.save(.create, "root")
    let share = try await owner.share("root", with: [.invited("bob")])
    let storage = server.service.storage
    let id = try storage.partition(
      PartitionKey(
        container: TestServer.container,
        environment: .development,
        scope: .private,
        owner: try await owner.userRecordName
      )
    )
    let index = RecordIndex(name: "___modTime")
    try await server.service.indexes.activate([index], of: ShareDictionary.recordType, id)
    server.clock.advance(seconds: 10)
    try await guest.accept(share)
    try storage.read { snapshot in
      let walk = IndexWalk(
        type: ShareDictionary.recordType,
        field: index.name,
        zone: nil,
        lower: nil,
        upper: nil,
        isDescending: false,
        after: nil,
        limit: 10
      )
      let entries = try snapshot.entries(in: id, walk)
      let records = try snapshot.records(in: id, keys: entries.map(\.record))
      #expect(entries.count == 1)
      for entry in entries {
        let record = try #require(records[entry.record])
        #expect(index.keys(of: record, [:]) == [entry.key])
      }
    }
  }

  @Test("A record that would be its own ancestor is refused", arguments: [1, 2, 3, 10])
  func circle(levels: Int) async throws {
    let owner = try await TestServer().person().extended
    try await owner.makeZone()
    // The records between are only in the storage.
    for level in 0...levels {
      let parent = level == 0 ? nil : "c\(level - 1)"
      let made = try await owner.modify([.make(.create, "c\(level)", parent: parent)])
      #expect(made.allSatisfy { $0.error == nil })
    }
    let results = try await owner.modify([.make(.forceUpdate, "c0", parent: "c\(levels)")])
    #expect(results.map(\.error?.serverErrorCode) == [.badRequest])
    #expect(results[0].error?.reason?.contains("ancestor") == true)
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
}
