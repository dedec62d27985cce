/// A hash table from two words to one word, which records what was used recently: open addressing,
/// with adjacent slots for adjacent keys.
///
/// Row keys are assigned in order and mostly looked up in order, so eight consecutive keys share a
/// few cache lines; only their common part is hashed. A use is recorded in the slot itself, so that
/// nothing moves. The table does not interpret its contents: reference counts and locking are its
/// owner's responsibility.
package struct AgingTable: ~Copyable {
  /// The contents of a key.
  package struct Found {
    package let content: UInt
    /// Whether it was inserted or used since the table last aged.
    package let isRecent: Bool
  }

  private struct Entry {
    /// The first bit is the age; no owner uses it.
    var word: UInt64
    var key: Int64
    /// 0 in an empty slot.
    var content: UInt
  }

  private var entries: UnsafeMutablePointer<Entry>
  private var mask: Int
  /// The age bit of recent entries.
  private var age: UInt64 = 0
  package private(set) var count = 0
  private var recentCount = 0

  private static let smallest = 16
  private static let ageBit: UInt64 = 1 << 63

  package init() {
    entries = Self.make(Self.smallest)
    mask = Self.smallest - 1
  }

  deinit {
    entries.deallocate()
  }

  private static func make(_ capacity: Int) -> UnsafeMutablePointer<Entry> {
    let made = UnsafeMutablePointer<Entry>.allocate(capacity: capacity)
    made.initialize(repeating: Entry(word: 0, key: 0, content: 0), count: capacity)
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

  /// The slot of a key, or the empty slot for it.
  @inline(__always)
  private func place(_ word: UInt64, _ key: Int64) -> Int {
    var index = Self.home(word, key, mask)
    while entries[index].content != 0 {
      if entries[index].key == key, entries[index].word & ~Self.ageBit == word { return index }
      index = (index + 1) & mask
    }
    return index
  }

  @inline(__always)
  private func found(_ index: Int) -> Found? {
    let entry = entries[index]
    guard entry.content != 0 else { return nil }
    return Found(content: entry.content, isRecent: entry.word & Self.ageBit == age)
  }

  /// The contents of a key, which then counts as used.
  @inline(__always)
  package mutating func use(_ word: UInt64, _ key: Int64) -> Found? {
    let index = place(word, key)
    guard let found = found(index) else { return nil }
    if !found.isRecent {
      entries[index].word = word | age
      recentCount += 1
    }
    return found
  }

  /// Inserts a word other than 0, which counts as used, and returns the one it replaces.
  @inline(__always)
  @discardableResult
  package mutating func insert(_ content: UInt, _ word: UInt64, _ key: Int64) -> Found? {
    if count * 4 >= (mask + 1) * 3 { resize((mask + 1) * 2) }
    let index = place(word, key)
    let former = found(index)
    entries[index] = Entry(word: word | age, key: key, content: content)
    if former == nil { count += 1 }
    if former?.isRecent != true { recentCount += 1 }
    return former
  }

  /// Removes the contents of a key.
  @discardableResult
  package mutating func remove(_ word: UInt64, _ key: Int64) -> Found? {
    var hole = place(word, key)
    guard let removed = found(hole) else { return nil }
    // Later entries of the probe sequence move up, so that no search ends too early.
    var next = hole
    while true {
      next = (next + 1) & mask
      guard entries[next].content != 0 else { break }
      let home = Self.home(entries[next].word & ~Self.ageBit, entries[next].key, mask)
      if (next - home) & mask >= (next - hole) & mask {
        entries[hole] = entries[next]
        hole = next
      }
    }
    entries[hole].content = 0
    count -= 1
    if removed.isRecent { recentCount -= 1 }
    if mask > 4096, count * 8 < mask { resize((mask + 1) / 2) }
    return removed
  }

  /// Removes entries that were not used since the last call; the remaining ones count as unused.
  ///
  /// The function is called with each removed content.
  package mutating func age(dropping body: (UInt) -> Void) {
    if recentCount < count {
      for index in 0...mask {
        guard let found = found(index), !found.isRecent else { continue }
        body(found.content)
        entries[index].content = 0
      }
      count = recentCount
      // The gaps would end searches too early: the remaining entries are inserted again.
      var capacity = mask + 1
      while capacity > Self.smallest, count * 4 < capacity { capacity /= 2 }
      resize(capacity)
    }
    age ^= Self.ageBit
    recentCount = 0
  }

  package mutating func reserve(_ more: Int) {
    var capacity = mask + 1
    while (count + more) * 4 > capacity * 3 { capacity *= 2 }
    if capacity > mask + 1 { resize(capacity) }
  }

  private mutating func resize(_ capacity: Int) {
    let old = entries
    let oldCount = mask + 1
    entries = Self.make(capacity)
    mask = capacity - 1
    for index in 0..<oldCount where old[index].content != 0 {
      entries[place(old[index].word & ~Self.ageBit, old[index].key)] = old[index]
    }
    old.deallocate()
  }

  /// Calls the body with all entries, in no order.
  package func forEach(_ body: (Found) -> Void) {
    for index in 0...mask {
      if let found = found(index) { body(found) }
    }
  }

  package mutating func removeAll() {
    self = AgingTable()
  }

  // MARK: Invariants

  /// The broken invariants, a sentence each.
  package func brokenInvariants() -> [String] {
    var broken: [String] = []
    var (used, recent) = (0, 0)
    for index in 0...mask {
      guard let found = found(index) else { continue }
      let entry = entries[index]
      used += 1
      if found.isRecent { recent += 1 }
      if place(entry.word & ~Self.ageBit, entry.key) != index {
        broken.append("the entry at \(index) is not where a search for it ends")
      }
    }
    if used != count { broken.append("\(used) entries are used, \(count) are counted") }
    if recent != recentCount {
      broken.append("\(recent) entries are recent, \(recentCount) are counted")
    }
    if used > mask { broken.append("no slot is free, so that a search would not end") }
    return broken
  }

  /// Calls the body with all keys and what the table has for them, in no order.
  func forEachKey(_ body: (UInt64, Int64, Found) -> Void) {
    for index in 0...mask {
      guard let found = found(index) else { continue }
      body(entries[index].word & ~Self.ageBit, entries[index].key, found)
    }
  }
}
