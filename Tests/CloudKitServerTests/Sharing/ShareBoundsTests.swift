import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// The rows and bytes that participants can make an owner's database keep.
@Suite("The size of sharing", .everyEngine)
struct ShareBoundsTests {
  /// A share that everyone with the link may join.
  private func world(
    _ change: (inout ServiceLimits) -> Void
  ) async throws -> (SharedTree, RecordDictionary) {
    let tree = try await SharedTree(accepts: false, limits: change)
    try await tree.owner.save(.create, "open")
    return (tree, try await tree.owner.share("open", "public", publicPermission: .readWrite))
  }

  private func leave(_ share: String, _ tree: SharedTree) async throws {
    _ = try await tree.guest.modify([.make(.forceDelete, share)], in: .shared, zone: tree.zone)[0]
      .get()
  }

  @Test("One person joins a share a limited number of times, and others still join it")
  func joining() async throws {
    let (tree, share) = try await world { $0.participationsPerUser = 3 }
    for _ in 0..<3 {
      try await tree.guest.accept(share)
      try await leave("public", tree)
    }
    let refused = await #expect(throws: ErrorDictionary.self) { try await tree.guest.accept(share) }
    #expect(refused?.serverErrorCode == .badRequest)
    let carol = try await tree.server.person("carol")
    try await carol.accept(share)
    // Who takes part stays a participant.
    try await carol.accept(share)
    // An invitation to another share is not affected.
    try await tree.guest.accept(tree.share)
  }

  @Test("A share is joined a limited number of times by all together")
  func joiningByMany() async throws {
    let (tree, share) = try await world { $0.participationsPerShare = 2 }
    try await tree.guest.accept(share)
    try await tree.server.person("carol").accept(share)
    let dan = try await tree.server.person("dan")
    let refused = await #expect(throws: ErrorDictionary.self) { try await dan.accept(share) }
    #expect(refused?.serverErrorCode == .badRequest)
  }

  @Test("One person joins a limited number of shares")
  func manyShares() async throws {
    let (tree, share) = try await world { $0.joinedSharesPerUser = 1 }
    try await tree.guest.accept(share)
    await #expect(throws: ErrorDictionary.self) { try await tree.guest.accept(tree.share) }
    try await leave("public", tree)
    try await tree.guest.accept(share)
  }

  @Test("A person who left a share does not learn whether the owner's database is full")
  func quotaOfOthers() async throws {
    let (tree, share) = try await world { $0.userQuota = 40_000 }
    try await tree.guest.accept(share)
    try await leave("public", tree)
    _ = try await tree.owner.modify((0..<200).map { .make(.create, "r\($0)") })
    tree.server.clock.advance(seconds: 61)
    let full = await #expect(throws: ErrorDictionary.self) {
      try await tree.owner.modify([.make(.create, "one-more")])
    }
    #expect(full?.serverErrorCode == .quotaExceeded)
    let request = ModifyRecordsRequest(operations: [.make(.create, "x")], zoneID: tree.zone)
    let reply = await tree.guest.send(
      .modifyRecords,
      try WireCoding.encode(request),
      in: .shared
    )
    let text = String(decoding: reply.body, as: UTF8.self)
    #expect(text.contains("ZONE_NOT_FOUND"))
    #expect(!text.contains("QUOTA_EXCEEDED"))
  }

  @Test("A participant uploads no more than a share to the owner's database")
  func uploads() async throws {
    let (tree, share) = try await world {
      $0.publicUserQuota = 10_000
      $0.assetGrace = 10_000
    }
    try await tree.guest.accept(share)
    func upload(_ person: Person, _ scope: DatabaseScope) async throws -> Int {
      let reply: UploadTokensResponse = try await person.call(
        .uploadAssets,
        UploadTokensRequest(
          tokens: [UploadTokenField(fieldName: "file", recordName: "a", recordType: "Note")],
          zoneID: tree.zone
        ),
        in: scope
      )
      let path = try reply.tokens[0].get().url.replacing("http://127.0.0.1:8080", with: "")
      return await tree.server.send("POST", path, body: Data(count: 6000)).status
    }
    #expect(try await upload(tree.guest, .shared) == 200)
    #expect(try await upload(tree.guest, .shared) == 200)
    #expect(try await upload(tree.guest, .shared) == 413)
    for _ in 0..<3 { #expect(try await upload(tree.owner, .private) == 200) }
    tree.server.clock.advance(seconds: 2100)
    #expect(try await upload(tree.guest, .shared) == 200)
  }

  // MARK: Short IDs

  private func exists(_ guid: String?, _ server: TestServer) throws -> Bool {
    try server.service.storage.read { try $0.shortGUID(guid ?? "") } != nil
  }

  private func makeLinked(_ name: String, _ person: Person) async throws -> String? {
    let operation = RecordOperation(
      operationType: .create,
      record: RecordDictionary(recordName: name, recordType: "Note", createShortGUID: true)
    )
    let guid = try await person.modify([operation])[0].get().shortGUID
    #expect(try exists(guid, person.server))
    return guid
  }

  @Test("The short ID of a record goes with the record, or with its zone")
  func shortIDs() async throws {
    let ada = try await TestServer().person()
    try await ada.makeZone()
    let alone = try await makeLinked("alone", ada)
    try await ada.save(.forceDelete, "alone", recordType: nil)
    #expect(try !exists(alone, ada.server))
    let again = try await makeLinked("alone", ada)
    #expect(again != alone)
    let whole = try await ada.share(nil)
    #expect(try exists(whole.shortGUID, ada.server))
    try await ada.deleteZone()
    #expect(try !exists(again, ada.server))
    #expect(try !exists(whole.shortGUID, ada.server))
  }

  @Test("The short ID of a root outlives its share, and ends with the root")
  func shortIDOfRoot() async throws {
    let tree = try await SharedTree()
    let guid = tree.share.shortGUID
    try await tree.owner.save(.forceDelete, "share", recordType: nil)
    #expect(try exists(guid, tree.server))
    let again = try await tree.owner.share("root", "second")
    #expect(again.shortGUID == guid)
    #expect(try await tree.owner.resolve(guid).rootRecordName == "root")
    for name in ["b", "a"] { try await tree.owner.save(.forceDelete, name, recordType: nil) }
    try await tree.owner.save(.forceDelete, "root", recordType: nil)
    #expect(try !exists(guid, tree.server))
  }

  // MARK: Files

  /// The tree, whose root has a file, and the guest's URL of it.
  private func fileWorld() async throws -> (SharedTree, String) {
    let tree = try await SharedTree()
    let file = try await tree.owner.upload(Data([1, 2, 3]))
    try await tree.owner.save(.forceUpdate, "a", ["file": .asset(file)])
    let found = try await tree.guest.lookup("a", in: .shared, zone: tree.zone)
    let url = try #require(found.content("file")?.assets.first?.downloadURL)
    #expect(await tree.guest.download(url).status == 200)
    return (tree, url)
  }

  @Test("A participant's URL of a file ends when the participant is removed")
  func removedParticipant() async throws {
    let (tree, url) = try await fileWorld()
    _ = try await tree.owner.updateShare(
      try await tree.owner.lookup("share"),
      participants: []
    )
    #expect(await tree.guest.download(url).status == 403)
  }

  @Test("A participant's URL of a file ends when the record leaves the share")
  func removedRecord() async throws {
    let (tree, url) = try await fileWorld()
    var record = RecordDictionary(recordName: "a", recordType: "Note")
    record.removesParent = true
    _ = try await tree.owner.modify([
      RecordOperation(operationType: .forceUpdate, record: record)
    ])[0].get()
    #expect(await tree.guest.download(url).status == 403)
    let own = try await tree.owner.lookup("a").content("file")?.assets.first?.downloadURL
    #expect(await tree.owner.download(try #require(own)).status == 200)
  }

  @Test("A visitor's URL of a file ends when the share is closed")
  func closedShare() async throws {
    let (tree, share) = try await world { _ in }
    let file = try await tree.owner.upload(Data([1, 2, 3]))
    try await tree.owner.save(.forceUpdate, "open", ["file": .asset(file)])
    var visitor = tree.server.visitor
    let found = try await visitor.resolve(share.shortGUID, root: true)
    visitor.publicAccessToken = found.anonymousPublicAccess?.token
    let read = try await visitor.lookup("open", in: .shared, zone: found.zoneID)
    let urls = [found.rootRecord, read].compactMap {
      $0?.content("file")?.assets.first?.downloadURL
    }
    #expect(urls.count == 2)
    for url in urls { #expect(await visitor.download(url).status == 200) }
    _ = try await tree.owner.updateShare(
      try await tree.owner.lookup("public"),
      publicPermission: ParticipantPermission.none
    )
    for url in urls { #expect(await visitor.download(url).status == 403) }
  }

  @Test("An invited person loads the file of a share's root before joining")
  func invited() async throws {
    let tree = try await SharedTree(accepts: false)
    let file = try await tree.owner.upload(Data([1, 2, 3]))
    try await tree.owner.save(.forceUpdate, "root", ["file": .asset(file)])
    let found = try await tree.guest.resolve(tree.share.shortGUID, root: true)
    let url = try #require(found.rootRecord?.content("file")?.assets.first?.downloadURL)
    #expect(await tree.guest.download(url).status == 200)
  }

  @Test("An invited person's URL of a file ends when the invitation is withdrawn")
  func withdrawnInvitation() async throws {
    let tree = try await SharedTree(accepts: false)
    let file = try await tree.owner.upload(Data([1, 2, 3]))
    try await tree.owner.save(.forceUpdate, "root", ["file": .asset(file)])
    let found = try await tree.guest.resolve(tree.share.shortGUID, root: true)
    let url = try #require(found.rootRecord?.content("file")?.assets.first?.downloadURL)
    #expect(await tree.guest.download(url).status == 200)
    _ = try await tree.owner.updateShare(try await tree.owner.lookup("share"), participants: [])
    #expect(await tree.guest.download(url).status == 403)
  }

  @Test("A signed-in visitor's URL of a file ends when the link is closed")
  func closedLink() async throws {
    let (tree, share) = try await world { _ in }
    let file = try await tree.owner.upload(Data([1, 2, 3]))
    try await tree.owner.save(.forceUpdate, "open", ["file": .asset(file)])
    let found = try await tree.guest.resolve(share.shortGUID, root: true)
    let url = try #require(found.rootRecord?.content("file")?.assets.first?.downloadURL)
    #expect(await tree.guest.download(url).status == 200)
    _ = try await tree.owner.updateShare(
      try await tree.owner.lookup("public"),
      publicPermission: ParticipantPermission.none
    )
    #expect(await tree.guest.download(url).status == 403)
  }

  @Test("A removed participant's upload URLs end")
  func removedUploader() async throws {
    let tree = try await SharedTree()
    let reply: UploadTokensResponse = try await tree.guest.call(
      .uploadAssets,
      UploadTokensRequest(
        tokens: [UploadTokenField(fieldName: "file", recordName: "a", recordType: "Note")],
        zoneID: tree.zone
      ),
      in: .shared
    )
    let path = try reply.tokens[0].get().url.replacing("http://127.0.0.1:8080", with: "")
    _ = try await tree.owner.updateShare(try await tree.owner.lookup("share"), participants: [])
    #expect(await tree.server.send("POST", path, body: Data([1])).status == 403)
  }

  // MARK: The state of a share

  private func named(_ given: String, id: String? = nil) -> ShareParticipant {
    ShareParticipant(
      participantId: id,
      type: .user,
      acceptanceStatus: .invited,
      permission: .readOnly,
      userIdentity: UserIdentity(
        nameComponents: NameComponents(givenName: given),
        lookupInfo: LookupInfo(emailAddress: "\(UUID())@example.com")
      )
    )
  }

  @Test("The texts of a participant have a limit of bytes")
  func participantTexts() async throws {
    let tree = try await SharedTree(accepts: false)
    let owner = tree.owner.extended
    func refusal(_ participant: ShareParticipant) async -> ErrorExtensionCode? {
      do {
        let share = try await owner.lookup("share")
        _ = try await owner.updateShare(share, participants: [participant])
        return nil
      } catch {
        return (error as? ErrorDictionary)?.extension?.code
      }
    }
    let marks = "e" + String(repeating: "\u{301}", count: 200)
    #expect(await refusal(named(String(repeating: "x", count: 256))) == .limitExceeded)
    #expect(await refusal(named(marks)) == .limitExceeded)
    #expect(await refusal(named("Ada", id: marks)) == .limitExceeded)
    #expect(await refusal(named(String(repeating: "x", count: 255))) == nil)
  }

  @Test("The state of a share has a limit of bytes, which no further participant exceeds")
  func stateSize() async throws {
    let (tree, share) = try await world { $0.shareStateSize = 3000 }
    let owner = tree.owner.extended
    var invited: [ShareParticipant] = []
    var refused: ErrorDictionary?
    for _ in 0..<40 where refused == nil {
      invited.append(named(String(repeating: "x", count: 200)))
      do {
        _ = try await owner.updateShare(try await owner.lookup("share"), participants: invited)
      } catch {
        refused = error as? ErrorDictionary
        invited.removeLast()
      }
    }
    #expect(refused?.extension?.code == .limitExceeded)
    #expect((3...14).contains(invited.count))
    // A save that adds nothing passes, and so does another share.
    _ = try await owner.updateShare(try await owner.lookup("share"), participants: invited)
    try await tree.guest.accept(share)
  }

  @Test("A zone of another owner for which the caller has no view shows nothing")
  func missingView() async throws {
    let tree = try await SharedTree()
    let storage = tree.server.service.storage
    let id = try storage.partition(
      PartitionKey(
        container: TestServer.container,
        environment: .development,
        scope: .private,
        owner: try await tree.owner.userRecordName
      )
    )
    let found = try storage.read { try $0.zones(in: id, named: ["notes"]).first?.number }
    let zone = try #require(found)
    let key = RecordKey(zone: zone, name: "root")
    let stored = try storage.read { try $0.records(in: id, keys: [key])[key] }
    let record = try #require(stored)
    #expect(DatabaseAccess.whole.sees(record))
    #expect(!DatabaseAccess.shared([:]).sees(record))
    #expect(!DatabaseAccess.shared([:]).reader(of: zone).mayWrite(record))
  }

  @Test("Records that a share's making or ending moves count for the user's rate")
  func movedRows() async throws {
    let server = try await TestServer(limits: {
      $0.linkedRowsPerSecond = 1
      $0.linkedRowBurst = 50
    })
    let owner = try await server.person("ada")
    try await owner.makeZone()
    let children = (0..<60).map { RecordOperation.make(.create, "c\($0)", parent: "root") }
    _ = try await owner.modify([.make(.create, "root")] + children)
    server.clock.advance(seconds: 200)
    try await owner.save(.create, "a")
    _ = try await owner.share("root")
    for name in ["b", "c"] {
      let refused = await #expect(throws: ErrorDictionary.self) {
        try await owner.save(.create, name)
      }
      #expect(refused?.serverErrorCode == .throttled)
      server.clock.advance(seconds: 200)
      try await owner.save(.create, name)
      // Refused for no number of rows: an owner can always end a share.
      _ = try? await owner.modify([.make(.forceDelete, "share", recordType: nil)])
    }
  }
}
