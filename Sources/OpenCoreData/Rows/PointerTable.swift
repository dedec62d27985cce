/// Objects by two words: an open table whose neighbours in key are neighbours in memory.
///
/// Keys of rows are handed out in order and mostly looked up in order, so eight keys that follow
/// each other share two lines of the processor's cache; only their common part is scattered. The
/// table neither retains nor releases: that is its owner's part, and so is locking.
package struct PointerTable: ~Copyable {
  struct Entry {
    var word: UInt64
    var key: Int64
    var object: UnsafeRawPointer?
  }

  private var entries: UnsafeMutablePointer<Entry>
  private var mask: Int
  package private(set) var count = 0

  private static let smallest = 16

  package init(minimumCapacity: Int = 0) {
    var capacity = Self.smallest
    while capacity * 3 < minimumCapacity * 4 { capacity *= 2 }
    entries = Self.make(capacity)
    mask = capacity - 1
  }

  deinit {
    entries.deallocate()
  }

  package var isEmpty: Bool { count == 0 }

  private static func make(_ capacity: Int) -> UnsafeMutablePointer<Entry> {
    let made = UnsafeMutablePointer<Entry>.allocate(capacity: capacity)
    made.initialize(repeating: Entry(word: 0, key: 0, object: nil), count: capacity)
    return made
  }

  @inline(__always)
  private static func home(_ word: UInt64, _ key: Int64, _ mask: Int) -> Int {
    let bits = UInt64(bitPattern: key)
    var block = (bits >> 3) ^ (word &* 0x9E37_79B9_7F4A_7C15)
    block = block &* 0xD6E8_FEB8_6659_FD93
    block ^= block >> 32
    return Int(truncatingIfNeeded: block << 3 | bits & 7) & mask
  }

  /// The place of a key, or the empty one where it would be.
  @inline(__always)
  private func place(_ word: UInt64, _ key: Int64) -> Int {
    var index = Self.home(word, key, mask)
    while entries[index].object != nil {
      if entries[index].key == key, entries[index].word == word { return index }
      index = (index + 1) & mask
    }
    return index
  }

  @inline(__always)
  package func object(_ word: UInt64, _ key: Int64) -> UnsafeRawPointer? {
    entries[place(word, key)].object
  }

  /// Enters an object and returns the one that had its place.
  @inline(__always)
  @discardableResult
  package mutating func insert(
    _ object: UnsafeRawPointer,
    _ word: UInt64,
    _ key: Int64
  ) -> UnsafeRawPointer? {
    if count * 4 >= (mask + 1) * 3 { resize((mask + 1) * 2) }
    let index = place(word, key)
    let former = entries[index].object
    entries[index] = Entry(word: word, key: key, object: object)
    if former == nil { count += 1 }
    return former
  }

  /// Removes what is there.
  @inline(__always)
  @discardableResult
  package mutating func remove(
    _ word: UInt64,
    _ key: Int64
  ) -> UnsafeRawPointer? {
    var hole = place(word, key)
    guard let removed = entries[hole].object else { return nil }
    // What would have had this place moves up, so that no search ends too early.
    var next = hole
    while true {
      next = (next + 1) & mask
      guard entries[next].object != nil else { break }
      let home = Self.home(entries[next].word, entries[next].key, mask)
      if (next - home) & mask >= (next - hole) & mask {
        entries[hole] = entries[next]
        hole = next
      }
    }
    entries[hole].object = nil
    count -= 1
    if mask > 4096, count * 8 < mask { resize((mask + 1) / 2) }
    return removed
  }

  mutating func reserve(_ more: Int) {
    var capacity = mask + 1
    while (count + more) * 4 > capacity * 3 { capacity *= 2 }
    if capacity > mask + 1 { resize(capacity) }
  }

  private mutating func resize(_ capacity: Int) {
    let old = entries
    let oldCount = mask + 1
    entries = Self.make(capacity)
    mask = capacity - 1
    for index in 0..<oldCount where old[index].object != nil {
      entries[place(old[index].word, old[index].key)] = old[index]
    }
    old.deallocate()
  }

  /// Every object, in no order.
  package func forEach(_ body: (UnsafeRawPointer) -> Void) {
    for index in 0...mask {
      if let object = entries[index].object { body(object) }
    }
  }
}
