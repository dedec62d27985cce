import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("The storage seam", .everyEngine)
struct StorageTests {
  private let storage: any Storage
  private let id: PartitionID

  init() throws {
    storage = try TestEngine.storage(.still)
    id = try storage.partition(.privateDatabase)
  }

  private func record(_ name: String, _ change: Int64, tag: String) -> StoredRecord {
    .plain(name, in: .defaultZone, type: "T", tag: tag, change: change)
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

  @Test("A batch is written if its expectations hold, and not at all otherwise")
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

  @Test("A batch can expect the tags of existing and missing records")
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

  @Test("A batch can expect the records that refer to another one")
  func referrers() throws {
    let target = RecordKey(zone: .defaultZone, name: "a")
    let source = RecordKey(zone: .defaultZone, name: "b")
    var link = batch("b", 1)
    link.references = [StoredReference(source: source, target: "a", action: .deleteSelf)]
    link.relinkedRecords = [source]
    try storage.commit(link)
    var write = batch("c", 2)
    write.expectedReferrers = [target: []]
    #expect(throws: ExpectationFailed.self) { try storage.commit(write) }
    write.expectedReferrers = [target: [source]]
    try storage.commit(write)
  }

  @Test("A batch can expect a schema's version")
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

  @Test("Partitions are isolated from each other")
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

  @Test("A text with NUL is refused by every engine, and nothing of its batch is written")
  func nul() throws {
    var write = batch("a", 1)
    write.records.append(record("b\0", 2, tag: "t"))
    let error = #expect(throws: ErrorDictionary.self) { try storage.commit(write) }
    #expect(error?.serverErrorCode == .badRequest)
    #expect(throws: ErrorDictionary.self) {
      try storage.read { try $0.zones(in: id, named: ["x\0"]) }
    }
    #expect(try names().isEmpty)
  }

  @Test(
    "Index entries are in the order of keys, names and zones, from any position in both directions"
  )
  func walks() throws {
    let zones = [ZoneNumber.defaultZone, ZoneNumber(1), ZoneNumber(2)]
    var write = WriteBatch(partition: id)
    write.counter = ChangeNumber(1)
    for zone in zones.dropFirst() {
      write.zones.append(
        StoredZone(number: zone, name: "z\(zone.rawValue)", change: ChangeNumber(1))
      )
    }
    var all: [IndexPosition] = []
    for number in 0..<60 {
      let position = IndexPosition(
        key: IndexKey(.integer(Int64(number * 7 % 10) - 5)),
        record: RecordKey(zone: zones[number % 3], name: "r\(number * 11 % 4)-\(number / 12)")
      )
      guard !all.contains(position) else { continue }
      all.append(position)
      write.addedIndexEntries.append(
        IndexEntry(type: "T", field: "f", value: position.key, key: position.record)
      )
    }
    try storage.commit(write)
    all.sort { left, right in
      if left.key != right.key { return left.key < right.key }
      if left.record.name != right.record.name { return left.record.name < right.record.name }
      return left.record.zone.rawValue < right.record.zone.rawValue
    }
    for isDescending in [false, true] {
      for zone in [nil, zones[0], zones[2]] {
        let expected = (isDescending ? all.reversed() : all).filter {
          zone == nil || $0.record.zone == zone
        }
        var walk = IndexWalk(
          type: "T",
          field: "f",
          zone: zone,
          isDescending: isDescending,
          limit: 7
        )
        var found: [IndexPosition] = []
        while true {
          let page = try storage.read { try $0.entries(in: id, walk) }
          found += page
          guard page.count == 7 else { break }
          walk.after = page.last
        }
        #expect(found == expected)
      }
    }
  }

  @Test("Events are complete and in the order of commits, and old ones are removed")
  func events() throws {
    func event(_ number: Int) throws {
      var write = batch("r\(number)", Int64(number))
      write.event = WriteBatch.EventWrite(time: Int64(number), body: Data("\(number)".utf8))
      try storage.commit(write)
    }
    /// PostgreSQL shows a commit when all earlier transactions have ended, in other databases too.
    func reported(_ count: Int, after position: EventPosition) throws -> [StoredEvent] {
      var found: [StoredEvent] = []
      repeat { found = try storage.events(after: position, limit: 10) } while found.count < count
      return found
    }
    let start = try storage.newestEvent()
    for number in 1...5 { try event(number) }
    let all = try reported(5, after: start)
    #expect(all.map { String(decoding: $0.body, as: UTF8.self) } == ["1", "2", "3", "4", "5"])
    #expect(try storage.events(after: all[1].position, limit: 2) == Array(all[2...3]))
    try storage.forgetEvents(before: 100)
    // Not the newest: its number must not be used again.
    try event(6)
    let later = try reported(1, after: all[4].position)
    #expect(later.map { String(decoding: $0.body, as: UTF8.self) } == ["6"])
    #expect(try storage.newestEvent() >= later[0].position)
  }

  @Test("A batch decided before tombstones were collected does not lower the horizon")
  func horizon() throws {
    var zone = StoredZone(number: ZoneNumber(1), name: "z", change: ChangeNumber(1))
    var make = WriteBatch(partition: id)
    make.zones = [zone]
    make.counter = ChangeNumber(1)
    try storage.commit(make)
    var collect = WriteBatch(partition: id)
    collect.collectedZones = [
      WriteBatch.CollectedZone(name: "z", number: ZoneNumber(1), horizon: ChangeNumber(9))
    ]
    try storage.commit(collect)
    zone.change = ChangeNumber(10)
    var late = WriteBatch(partition: id)
    late.expectedCounter = ChangeNumber(1)
    late.counter = ChangeNumber(10)
    late.zones = [zone]
    try storage.commit(late)
    let kept = try storage.read { try $0.zones(in: id, named: ["z"]).first }
    #expect(kept?.change == ChangeNumber(10))
    #expect(kept?.horizon == ChangeNumber(9))
    // A zone of the same name that is created again begins without tombstones.
    late.expectedCounter = ChangeNumber(10)
    late.counter = ChangeNumber(11)
    late.zones = [StoredZone(number: ZoneNumber(11), name: "z", change: ChangeNumber(11))]
    try storage.commit(late)
    #expect(try storage.read { try $0.zones(in: id, named: ["z"]).first }?.horizon == .zero)
  }

  @Test("Erasing a partition refuses earlier decisions")
  func erasing() throws {
    try storage.commit(batch("a", 1))
    var erase = WriteBatch(partition: id)
    erase.erasure = .rows
    try storage.commit(erase)
    var late = batch("b", 2)
    late.expectedCounter = ChangeNumber(1)
    #expect(throws: ExpectationFailed.self) { try storage.commit(late) }
  }
}
