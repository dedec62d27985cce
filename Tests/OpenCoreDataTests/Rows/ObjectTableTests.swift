import OpenCoreData
import Testing

@Suite("Tables of objects")
struct ObjectTableTests {
  private struct Key: Hashable {
    var word: UInt64
    var key: Int64
  }

  @Test("A table and a dictionary agree after random operations", arguments: [1, 2, 3] as [UInt64])
  func randomLife(seed: UInt64) {
    var random = SeededNumbers(seed: seed)
    var table = ObjectTable()
    var expected: [Key: Int] = [:]
    for step in 1...30_000 {
      // Near keys fill blocks, far ones have blocks of their own; temporary keys are negative.
      let range: Range<Int64> = Bool.random(using: &random) ? -40..<200 : -1_000_000..<1_000_000
      let key = Key(
        word: UInt64.random(in: 0..<3, using: &random),
        key: Int64.random(in: range, using: &random)
      )
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1:
        table.insert(pointer(step), key.word, key.key)
        expected[key] = step
      case 2:
        table.remove(key.word, key.key)
        expected[key] = nil
      case 3:
        // Another object's entry is kept.
        table.remove(key.word, key.key, ifHolding: pointer(step))
      default:
        #expect(table.object(key.word, key.key) == expected[key].map(pointer))
      }
      #expect(table.count == expected.count)
    }
    for (key, step) in expected { #expect(table.object(key.word, key.key) == pointer(step)) }
    var found: Set<UnsafeRawPointer> = []
    table.forEach { found.insert($0) }
    #expect(found == Set(expected.values.map(pointer)))
    for (key, step) in expected { table.remove(key.word, key.key, ifHolding: pointer(step)) }
    #expect(table.count == 0)
    table.insert(pointer(1), 0, 5)
    table.removeAll()
    #expect(table.object(0, 5) == nil)
  }

  /// A step is never 0, so it has an address.
  private func pointer(_ step: Int) -> UnsafeRawPointer {
    UnsafeRawPointer(bitPattern: step * 16).unsafelyUnwrapped
  }
}

@Suite("Lists of references")
struct ReferenceListTests {
  @Test("A list returns the references that it was created from, for all keys and entities")
  func anyReferences() {
    var random = SeededNumbers(seed: 7)
    let references = (0..<2000).map { _ in
      RowReference(
        entityNumber: Int32.random(in: 1...2, using: &random),
        key: Bool.random(using: &random)
          ? Int64.random(in: 1...100, using: &random)
          : Int64.random(in: 1...(1 << 40), using: &random)
      )
    }
    let list = ReferenceList(references)
    #expect(Array(list) == references)
    for reference in references.prefix(50) {
      let position = list.position(of: reference, in: 0..<list.count)
      #expect(position == references.firstIndex(of: reference))
    }
    #expect(list.position(of: references[3], in: 4..<4) == nil)
    #expect(ReferenceList().isEmpty)
  }
}
