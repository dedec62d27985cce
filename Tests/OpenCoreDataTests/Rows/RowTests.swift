import Foundation
import Testing

import OpenCoreData

@Suite("Rows")
struct RowTests {
  @Test("A row returns every value that it was created from")
  func everyKind() throws {
    let values: [RowValue] = [
      .null, .integer(0), .integer(.min), .integer(.max), .double(-0.0), .double(.infinity),
      .date(1.5), .string(""), .string("rain"), .string("Größe 🌧"),
      .string(String(repeating: "long ", count: 1000)), .data(Data()), .data(Data([0, 1, 2])),
      .data(Data(repeating: 7, count: 100_000)), .uuid(UUID()),
      .decimal(RowDecimal(try #require(Decimal(string: "12345678901234567890.5")))),
      .url(try #require(URL(string: "https://example.com/a?b=c"))),
      .reference(RowReference(entityNumber: 3, key: 1 << 40)),
    ]
    let reference = RowReference(entityNumber: 12, key: 34)
    let row = Row(reference: reference, version: 5, values: values)
    #expect(row.reference == reference)
    #expect(row.version == 5)
    #expect(row.count == values.count)
    #expect(row.values == values)
    for (index, value) in values.enumerated() { #expect(row[index] == value) }
  }

  @Test("A row equals a string only if it has the same spelling")
  func holdsStrings() {
    let composed = "\u{E9}toile of the morning"
    let decomposed = "e\u{301}toile of the morning"
    let long = String(repeating: "long ", count: 1000)
    let row = Row(
      reference: RowReference(entityNumber: 1, key: 1),
      version: 1,
      values: [.string(composed), .null, .string(long), .string(""), .integer(1)]
    )
    #expect(row.holds(.string(composed), at: 0))
    #expect(!row.holds(.string(decomposed), at: 0))
    #expect(!row.holds(.null, at: 0))
    #expect(row.holds(.null, at: 1))
    #expect(!row.holds(.string(""), at: 1))
    #expect(row.holds(.string(long), at: 2))
    #expect(!row.holds(.string(long + "x"), at: 2))
    #expect(row.holds(.string(""), at: 3))
    #expect(!row.holds(.integer(2), at: 4))
  }

  @Test("A row without values is valid")
  func noValues() {
    let row = Row(reference: RowReference(entityNumber: 1, key: 1), version: 1, values: [])
    #expect(row.values.isEmpty)
  }

  @Test("A builder can create several rows")
  func builderIsUsedAgain() {
    let builder = RowBuilder()
    let reference = RowReference(entityNumber: 1, key: 1)
    let large: [RowValue] = [.string(String(repeating: "x", count: 2048)), .null, .string("y")]
    let boxed: [RowValue] = [.string(String(repeating: "x", count: 2049)), .integer(1)]
    for values in [large, boxed, large, [.string("z")], boxed] {
      let row = values.withUnsafeBufferPointer {
        builder.row(reference: reference, version: 1, values: $0)
      }
      #expect(row.values == values)
    }
  }
}

@Suite("Tables with aging")
struct AgingTableTests {
  private struct Key: Hashable {
    var word: UInt64
    var key: Int64
  }

  private struct Known: Equatable {
    var content: UInt
    var isRecent: Bool

    init(_ content: UInt, isRecent: Bool) {
      self.content = content
      self.isRecent = isRecent
    }

    init(_ found: AgingTable.Found) {
      self.init(found.content, isRecent: found.isRecent)
    }
  }

  @Test("A table and a dictionary agree after random operations", arguments: [1, 2, 3] as [UInt64])
  func randomLife(seed: UInt64) {
    var random = SeededNumbers(seed: seed)
    var table = AgingTable()
    var expected: [Key: Known] = [:]
    for step in 1...20_000 as ClosedRange<UInt> {
      // Few words and near keys, like those of rows, so that neighbors collide.
      let key = Key(
        word: UInt64.random(in: 0..<3, using: &random),
        key: Int64.random(in: 0..<400, using: &random)
      )
      switch Int.random(in: 0..<1000, using: &random) {
      case 0..<500:
        let former = table.insert(step, key.word, key.key)
        #expect(former.map(Known.init) == expected[key])
        expected[key] = Known(step, isRecent: true)
      case 500..<700:
        let removed = table.remove(key.word, key.key)
        #expect(removed.map(Known.init) == expected.removeValue(forKey: key))
      case 700..<703:
        var dropped: Set<UInt> = []
        table.age { dropped.insert($0) }
        #expect(dropped == Set(expected.values.filter { !$0.isRecent }.map(\.content)))
        expected = expected.filter(\.value.isRecent)
          .mapValues { Known($0.content, isRecent: false) }
      default:
        #expect(table.use(key.word, key.key).map(Known.init) == expected[key])
        expected[key]?.isRecent = true
      }
      #expect(table.count == expected.count)
      if step.isMultiple(of: 500) { #expect(table.brokenInvariants().isEmpty) }
    }
    var contents: Set<UInt> = []
    table.forEach { contents.insert($0.content) }
    #expect(contents == Set(expected.values.map(\.content)))
    for (key, known) in expected {
      #expect(table.use(key.word, key.key).map(Known.init) == known)
    }
    table.removeAll()
    #expect(table.count == 0)
  }
}

@Suite("The row cache")
struct RowCacheTests {
  private func row(_ key: Int64, version: Int64 = 1, bytes: Int = 100) -> Row {
    Row(
      reference: RowReference(entityNumber: 1, key: key),
      version: version,
      values: [.string(String(repeating: "x", count: bytes)), .integer(key)]
    )
  }

  private func reference(_ key: Int64) -> RowReference { RowReference(entityNumber: 1, key: key) }

  @Test("The row cache keeps to its limit, and keeps the most recently read rows")
  func limit() {
    let cache = RowCache(byteLimit: 100_000)
    for key in Int64(1)...10_000 {
      cache.insert([row(key)], readAt: cache.epoch)
      #expect(cache.byteCount <= 100_000 + 1000)
    }
    #expect(cache.brokenInvariants().isEmpty)
    #expect(cache.row(reference(10_000)) != nil)
    #expect(cache.row(reference(1)) == nil)
  }

  @Test("Rows that are read repeatedly outlive rows that are read once")
  func use() {
    let cache = RowCache(byteLimit: 100_000)
    cache.insert([row(1)], readAt: cache.epoch)
    for key in Int64(2)...10_000 {
      cache.insert([row(key)], readAt: cache.epoch)
      #expect(cache.row(reference(1)) != nil)
    }
  }

  @Test("Rows that were read before a commit are not cached after it")
  func commitOvertakes() {
    let cache = RowCache()
    let epoch = cache.epoch
    cache.commit(written: [row(1, version: 2)], gone: [reference(2)])
    cache.insert([row(1, version: 1), row(2)], readAt: epoch)
    #expect(cache.row(reference(1))?.version == 2)
    #expect(cache.row(reference(2)) == nil)
  }

  @Test("Members of a to-many are cached until a commit changes relationships")
  func links() {
    let cache = RowCache()
    func members(_ index: Int) -> [RowMember]? {
      var found: [RowMember] = []
      let knowledge = cache.appendMembers(reference(1), toMany: index, to: &found)
      return knowledge == .nothing ? nil : found
    }
    var read = [RowMember(reference: reference(7), row: row(7))]
    cache.insert(&read, from: 0, of: reference(1), toMany: 0, readAt: cache.epoch)
    #expect(members(0)?.map(\.reference) == [reference(7)])
    #expect(members(0)?.first?.row != nil)
    #expect(members(1) == nil)
    cache.commit(written: [row(9)], gone: [], changesLinks: false)
    #expect(members(0) != nil)
    cache.commit(written: [row(9, version: 2)], gone: [], changesLinks: true)
    #expect(members(0) == nil)
  }

  @Test(
    "Cached members are unchanged, for all keys and entities",
    arguments: [
      [], [RowReference(entityNumber: 3, key: 8)], [RowReference(entityNumber: 65_535, key: 1)],
      [RowReference(entityNumber: 65_536, key: 1)],
      [RowReference(entityNumber: 2, key: (1 << 47) - 1)],
      [RowReference(entityNumber: 2, key: 1 << 47)], [RowReference(entityNumber: 1, key: -5)],
      [RowReference(entityNumber: 4, key: 2), RowReference(entityNumber: 1, key: 9)],
    ]
  )
  func anyMembers(_ references: [RowReference]) {
    let cache = RowCache()
    var read = references.map { RowMember(reference: $0, row: nil) }
    cache.insert(&read, from: 0, of: reference(1), toMany: 0, readAt: cache.epoch)
    var found: [RowMember] = []
    let knowledge = cache.appendMembers(reference(1), toMany: 0, to: &found)
    #expect(knowledge == (references.isEmpty ? .rows : .members))
    #expect(found.map(\.reference) == references)
  }

  @Test("Unused relationships are evicted for rows, and their memory is freed")
  func linksAge() {
    let cache = RowCache(byteLimit: 100_000)
    for key in Int64(1)...3000 {
      var read = [RowMember(reference: reference(key), row: row(key))]
      if key % 2 == 0 { read.append(RowMember(reference: reference(key + 1), row: nil)) }
      cache.insert(&read, from: 0, of: reference(key), toMany: 0, readAt: cache.epoch)
      #expect(cache.byteCount <= 100_000 + 1000)
    }
    #expect(cache.brokenInvariants().isEmpty)
    var found: [RowMember] = []
    #expect(cache.appendMembers(reference(1), toMany: 0, to: &found) == .nothing)
    #expect(cache.appendMembers(reference(2999), toMany: 0, to: &found) == .rows)
    let before = cache.byteCount
    cache.commit(written: [], gone: [], changesLinks: true)
    #expect(cache.byteCount < before)
    cache.commit(written: [], gone: (1...3001).map(reference))
    #expect(cache.byteCount == 0)
  }

  @Test("Members that were read without their rows get the cached ones")
  func linksWithoutRows() {
    let cache = RowCache()
    cache.insert([row(7)], readAt: cache.epoch)
    var read = [7, 8].map { RowMember(reference: reference($0), row: nil) }
    cache.insert(&read, from: 0, of: reference(1), toMany: 0, readAt: cache.epoch)
    #expect(read.map { $0.row != nil } == [true, false])
  }
}
