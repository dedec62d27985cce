import CloudKitWebServices
import Effects
import Foundation
import Testing

@testable import CloudKitServer

@Suite("The storage seam", .everyEngine)
struct StorageTests {
  private let storage: any Storage
  private let id: PartitionID

  init() throws {
    let effects = Effects(
      clock: StoppedClock(),
      randomness: SeededRandomness(seed: 1),
      tasks: PoolTaskSpawner()
    )
    storage = try TestEngine.storage(effects)
    id = try storage.partition(
      PartitionKey(
        container: "c",
        environment: .development,
        scope: .private,
        owner: "_o"
      )
    )
  }

  private func record(_ name: String, _ change: Int64, tag: String) -> StoredRecord {
    let stamp = ServerStamp(timestamp: 1, userRecordName: "_o", deviceID: "1")
    return StoredRecord(
      key: RecordKey(zone: .defaultZone, name: name),
      type: "T",
      tag: tag,
      change: ChangeNumber(change),
      created: stamp,
      modified: stamp,
      parent: nil,
      fields: Data("{}".utf8),
      contents: [],
      isDeleted: false
    )
  }

  private func batch(_ name: String, _ change: Int64, tag: String = "t") -> WriteBatch {
    var batch = WriteBatch(partition: id)
    batch.records = [record(name, change, tag: tag)]
    batch.counter = ChangeNumber(change)
    return batch
  }

  private func names() throws -> [String] {
    try storage.read { snapshot in
      try snapshot.changes(in: id, ChangeRange(zone: .defaultZone, after: .zero, limit: 100))
    }.map(\.key.name)
  }

  @Test("A batch is written when what it expects holds, and not at all when it does not")
  func counter() throws {
    var first = batch("a", 1)
    first.expectedCounter = .zero
    try storage.commit(first)
    var stale = batch("b", 1)
    stale.expectedCounter = .zero
    #expect(throws: ExpectationFailed.self) { try storage.commit(stale) }
    #expect(try names() == ["a"])
    #expect(try storage.read { try $0.database(id).counter } == ChangeNumber(1))
  }

  @Test("Tags can be expected, of records that are there and of records that are not")
  func tags() throws {
    try storage.commit(batch("a", 1, tag: "old"))
    let (there, absent) = (
      RecordKey(zone: .defaultZone, name: "a"), RecordKey(zone: .defaultZone, name: "b")
    )
    let cases: [(RecordKey, String?, Bool)] = [
      (there, "old", true), (there, "other", false), (there, nil, false), (absent, nil, true),
      (absent, "x", false),
    ]
    for (key, tag, holds) in cases {
      var write = batch("c", 2)
      write.expectedTags.updateValue(tag, forKey: key)
      if holds {
        try storage.commit(write)
      } else {
        #expect(throws: ExpectationFailed.self) { try storage.commit(write) }
      }
    }
  }

  @Test("Who refers to a record can be expected")
  func referrers() throws {
    let target = RecordKey(zone: .defaultZone, name: "a")
    let source = RecordKey(zone: .defaultZone, name: "b")
    var link = batch("b", 1)
    link.references = [StoredReference(source: source, target: "a", action: .deleteSelf)]
    try storage.commit(link)
    var write = batch("c", 2)
    write.expectedReferrers = [target: []]
    #expect(throws: ExpectationFailed.self) { try storage.commit(write) }
    write.expectedReferrers = [target: [source]]
    try storage.commit(write)
  }

  @Test("A schema's version can be expected")
  func schema() throws {
    func write(_ version: Int64) -> WriteBatch {
      var batch = WriteBatch()
      batch.expectedSchemaVersion = WriteBatch.ExpectedSchema(
        container: "c",
        environment: .development,
        version: version
      )
      batch.schema = WriteBatch.SchemaWrite(
        container: "c",
        environment: .development,
        stored: StoredSchema(schema: DatabaseSchema(), version: version + 1)
      )
      return batch
    }
    try storage.commit(write(0))
    #expect(throws: ExpectationFailed.self) { try storage.commit(write(0)) }
    try storage.commit(write(1))
    let stored = try storage.read { try $0.schema(container: "c", environment: .development) }
    #expect(stored?.version == 2)
  }

  @Test("Partitions never see each other")
  func partitions() throws {
    let other = try storage.partition(
      PartitionKey(container: "c", environment: .development, scope: .private, owner: "_p")
    )
    #expect(other != id)
    try storage.commit(batch("a", 1))
    let found = try storage.read {
      try $0.records(in: other, keys: [RecordKey(zone: .defaultZone, name: "a")])
    }
    #expect(found.isEmpty)
  }

  @Test("Passwords are hashed as PBKDF2 says (RFC 8018; values of RFC 6070 for SHA-256)")
  func passwords() {
    let expected = [
      2: "ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43",
      4096: "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a",
    ]
    for (rounds, hash) in expected {
      let made = PasswordHash.make("password", salt: Data("salt".utf8), rounds: rounds)
      #expect(made.hexadecimal == hash)
    }
  }
}
