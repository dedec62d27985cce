import CloudKitWebServices
import Foundation
import Synchronization
import Testing

@testable import CloudKitServer

@Suite("Deletion of ended zones in steps", .everyEngine)
struct ZoneRemovalTests {
  // MARK: The storage

  private static let zone = ZoneNumber(1)

  /// A zone with records of a thousand bytes, each with an entry of an index, a reference and a file.
  private func filled(_ count: Int, in zone: ZoneNumber) throws -> (any Storage, PartitionID) {
    let storage = try TestEngine.storage(.still)
    let id = try storage.partition(.privateDatabase)
    var batch = WriteBatch(partition: id)
    batch.counter = ChangeNumber(1)
    if zone != .defaultZone {
      batch.zones = [StoredZone(number: zone, name: "z", change: ChangeNumber(1))]
    }
    for number in 0..<count {
      var record = StoredRecord.plain("r\(100 + number)", in: zone, tag: "t", change: 1)
      record.change = ChangeNumber(Int64(number + 1))
      record.fields = Data(count: 1000)
      batch.records.append(record)
      batch.addedIndexEntries.append(
        IndexEntry(type: "T", field: "f", value: IndexKey(.integer(1)), key: record.key)
      )
      batch.references.append(
        StoredReference(source: record.key, target: "t", action: .deleteSelf)
      )
      batch.assetUses.append(StoredAssetUse(key: record.key, digest: "\(number)"))
      batch.relinkedRecords.append(record.key)
    }
    batch.counter = ChangeNumber(Int64(count))
    try storage.commit(batch)
    return (storage, id)
  }

  private struct Counts: Equatable {
    var records = 0
    var others = 0
  }

  /// The rows of a zone: records, and those that belong to them.
  private func counts(
    _ storage: any Storage,
    _ id: PartitionID,
    _ zone: ZoneNumber
  ) throws -> Counts {
    try storage.read { snapshot in
      let range = ChangeRange(zone: zone, after: .zero, limit: 1000)
      let walk = IndexWalk(type: "T", field: "f", zone: zone, limit: 1000)
      return Counts(
        records: try snapshot.changes(in: id, range).count,
        others: try snapshot.entries(in: id, walk).count + snapshot.usedAssets(in: id).count
          + snapshot.references(in: id, to: [RecordKey(zone: zone, name: "t")]).count
      )
    }
  }

  /// The rows that each transaction deletes until the zone is empty.
  private func steps(_ step: RemovalStep, of count: Int) throws -> [Int] {
    let (storage, id) = try filled(count, in: Self.zone)
    let key = EndedZone(Self.zone, in: id).key
    var deleted: [Int] = []
    for round in 0..<200 {
      let before = try counts(storage, id, Self.zone)
      var batch = WriteBatch(partition: id)
      batch.emptiedZones = [Self.zone]
      batch.removalStep = step
      if round > 0 { batch.expectedEntries[key] = .some(1) }
      try storage.commit(batch)
      let after = try counts(storage, id, Self.zone)
      // No row is left without its record.
      if after.records < before.records { #expect(after.others == 0) }
      deleted.append(before.records + before.others - after.records - after.others)
      let isNoted = try storage.read { try $0.entry(key) } != nil
      if !isNoted {
        #expect(after == Counts())
        return deleted
      }
    }
    return deleted
  }

  @Test("A transaction deletes a limited number of rows of an ended zone")
  func rows() throws {
    let deleted = try steps(RemovalStep(rows: 7, bytes: .max), of: 10)
    #expect(deleted.max() == 7)
    #expect(deleted.reduce(0, +) == 40)
    #expect((6...7).contains(deleted.count))
  }

  @Test("A transaction deletes a limited number of bytes of an ended zone")
  func bytes() throws {
    let deleted = try steps(RemovalStep(rows: 1000, bytes: 2500), of: 10)
    // Three records exceed the bytes.
    #expect(deleted == [33, 3, 3, 1] || deleted == [32, 3, 3, 2], "\(deleted)")
  }

  @Test("A small zone is deleted with the transaction that ends it")
  func small() throws {
    let deleted = try steps(RemovalStep(), of: 10)
    #expect(deleted == [40])
  }

  @Test("The default zone and a partition are thinned in transactions of limited size")
  func thinning() throws {
    let step = RemovalStep(rows: 9, bytes: .max)
    for thinning in [WriteBatch.Thinning.defaultZone, .partition] {
      let zone = thinning == .partition ? Self.zone : .defaultZone
      let (storage, id) = try filled(10, in: zone)
      while try storage.read({ try $0.exceeds(step, in: id, thinning) }) {
        let before = try counts(storage, id, zone)
        var batch = WriteBatch(partition: id)
        batch.thinning = thinning
        batch.removalStep = step
        try storage.commit(batch)
        let after = try counts(storage, id, zone)
        let deleted = before.records + before.others - after.records - after.others
        #expect((1...9).contains(deleted), "\(deleted)")
        guard deleted > 0 else { return }
      }
      let left = try counts(storage, id, zone)
      #expect(left.records + left.others <= 9)
    }
  }

  @Test("Thinning keeps the records of users in the default zone")
  func users() throws {
    let (storage, id) = try filled(10, in: .defaultZone)
    var batch = WriteBatch(partition: id)
    let user = StoredRecord.plain("_u", in: .defaultZone, type: "Users", tag: "t", change: 11)
    batch.records = [user]
    batch.addedIndexEntries = [
      IndexEntry(type: "Users", field: "f", value: IndexKey(.integer(1)), key: user.key)
    ]
    try storage.commit(batch)
    batch = WriteBatch(partition: id)
    batch.thinning = .defaultZone
    try storage.commit(batch)
    let walk = IndexWalk(type: "Users", field: "f", zone: .defaultZone, limit: 10)
    let entries = try storage.read { try $0.entries(in: id, walk) }
    #expect(entries.map(\.record) == [user.key])
    let kept = try storage.read { try $0.records(in: id, keys: [user.key]) }
    #expect(kept.count == 1)
    #expect(try counts(storage, id, .defaultZone) == Counts(records: 1))
  }

  // MARK: The service

  private func partition(_ person: Person) async throws -> PartitionID {
    try person.server.service.storage.partition(
      PartitionKey(
        container: TestServer.container,
        environment: .development,
        scope: .private,
        owner: try await person.userRecordName
      )
    )
  }

  private func noted(_ person: Person) throws -> [DirectoryEntry] {
    try person.server.service.storage.read { try $0.entries(DirectoryRange(.endedZone)) }
  }

  @Test("The rows of a deleted zone are no longer found, nor counted, and a restart continues")
  func restart() async throws {
    try await withTemporaryFolder { folder in
      let limits = { (limits: inout ServiceLimits) in limits.rowsPerRemoval = 5 }
      var person = try await TestServer(folder: folder, limits: limits).person()
      let id = try await partition(person)
      try await person.makeZone()
      _ = try await person.modify((0..<30).map { .make(.create, "a\($0)") })
      let whole = try await person.share(nil)
      let full = try person.server.service.storage.read { try $0.recordBytes(in: id) }
      try await person.deleteZone()
      #expect(try noted(person).count == 1)
      // As long as its rows are there: nothing is found, and the database has room for others.
      await #expect(throws: ErrorDictionary.self) { try await person.lookup("a29") }
      await #expect(throws: ErrorDictionary.self) { try await person.resolve(whole.shortGUID) }
      let storage = person.server.service.storage
      #expect(try storage.read { try $0.recordBytes(in: id) } < full / 10)
      #expect(try storage.read { try $0.recordCount(in: id, type: "Note") } == 0)
      let audit = folder.appendingPathComponent("audit")
      #expect(try storage.brokenInvariants(in: audit) == [])
      // A zone of the name is another zone.
      try await person.makeZone()
      try await person.save(.create, "a0", ["n": .int64(1)])
      await person.server.service.shutdown()

      person.server = try await TestServer(folder: folder, seed: 2, limits: limits)
      #expect(try noted(person).count == 1)
      try await person.server.service.housekeep()
      #expect(try noted(person).isEmpty)
      #expect(try await person.lookup("a0").content("n") == .int64(1))
      #expect(try await person.changes().names == ["a0"])
      let rows = try person.server.service.storage.read {
        try $0.recordBytes(in: id)
      }
      #expect(rows < full / 10)
      #expect(try person.server.service.storage.brokenInvariants(in: audit) == [])
      await person.server.service.shutdown()
    }
  }

  @Test("A participant reads, downloads and uploads nothing of an ended zone whose rows are left")
  func participants() async throws {
    let tree = try await SharedTree(limits: { $0.rowsPerRemoval = 1 })
    let file = try await tree.owner.upload(Data([1, 2, 3]))
    try await tree.owner.save(.forceUpdate, "a", ["file": .asset(file)])
    let found = try await tree.guest.lookup("a", in: .shared, zone: tree.zone)
    let download = try #require(found.content("file")?.assets.first?.downloadURL)
    #expect(await tree.guest.download(download).status == 200)
    let tokens: UploadTokensResponse = try await tree.guest.call(
      .uploadAssets,
      UploadTokensRequest(
        tokens: [UploadTokenField(fieldName: "file", recordName: "a", recordType: "Note")],
        zoneID: tree.zone
      ),
      in: .shared
    )
    let upload = try tokens.tokens[0].get().url
      .replacing("http://127.0.0.1:8080", with: "")
    let before = try await tree.guest.sharedChanges()
    try await tree.owner.deleteZone()
    #expect(try noted(tree.owner).count == 1)
    #expect(await tree.guest.download(download).status == 403)
    #expect(await tree.server.send("POST", upload, body: Data([1])).status == 403)
    let after = try await tree.guest.sharedChanges(since: before.syncToken)
    #expect(after.zones.map { $0.item?.deleted } == [true])
    await #expect(throws: ErrorDictionary.self) {
      try await tree.guest.lookup("a", in: .shared, zone: tree.zone)
    }
    await #expect(throws: ErrorDictionary.self) { try await tree.guest.feed(tree.zone) }
    await #expect(throws: ErrorDictionary.self) { try await tree.guest.accept(tree.share) }
    try await tree.server.service.housekeep()
    #expect(try noted(tree.owner).isEmpty)
  }

  @Test("A purge and a reset delete a limited number of rows in a transaction, and everything")
  func purgeAndReset() async throws {
    let batches = Mutex<[WriteBatch]>([])
    let server = try await TestServer(
      limits: { $0.rowsPerRemoval = 5 },
      storage: { base in
        let storage = FlakyStorage(base)
        storage.interpose { batch, _ in
          batches.withLock { $0.append(batch) }
          return false
        }
        return storage
      }
    )
    let (ada, bob) = (try await server.person(), try await server.person("bob"))
    for person in [ada, bob] {
      try await person.makeZone()
      _ = try await person.modify((0..<20).map { .make(.create, "a\($0)") })
      _ = try await person.modify((0..<20).map { .make(.create, "a\($0)") }, zone: nil)
    }
    _ = try await ada.modify((0..<20).map { .make(.create, "p\($0)") }, in: .public, zone: nil)
    let ids = [try await partition(ada), try await partition(bob)]
    batches.withLock { $0 = [] }
    try await server.service.accounts.delete("bob", purgesNow: true)
    let thinned = batches.withLock { all in
      defer { all = [] }
      return all.filter { $0.thinning == .partition }.count
    }
    // More than forty rows, five in each.
    #expect(thinned >= 8)
    try await server.service.schemas.promoteSchema(container: TestServer.container)
    try await server.service.schemas.resetDevelopment(container: TestServer.container)
    #expect(batches.withLock { $0.filter { $0.thinning == .defaultZone } }.count >= 6)
    try await server.service.housekeep()
    #expect(try noted(ada).isEmpty)
    for id in ids {
      let range = ChangeRange(zone: .defaultZone, after: .zero, limit: 100)
      #expect(try server.service.storage.read { try $0.changes(in: id, range) }.isEmpty)
    }
    let missing = await #expect(throws: ErrorDictionary.self) {
      try await ada.lookup("p1", in: .public, zone: nil)
    }
    #expect(missing?.serverErrorCode == .notFound)
  }
}
