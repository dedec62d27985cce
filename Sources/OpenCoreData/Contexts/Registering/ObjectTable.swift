/// A hash table from two words to objects, in blocks of 32 adjacent keys with open addressing.
///
/// Keys of rows are assigned in order, so most objects have neighbours: a full block takes little
/// more memory than the objects' addresses. A block of one object stores it in the table itself,
/// one of few has their addresses without gaps, and a large one has a slot for each key. The table
/// neither retains nor releases objects, and is not synchronized: that is its owner's
/// responsibility.
package struct ObjectTable: ~Copyable {
  private struct Block {
    var word: UInt64 = 0
    /// The keys without their last five bits.
    var keys: Int64 = 0
    /// The only object, or the addresses of all, in the order of their keys.
    var content: UnsafeMutableRawPointer?
    /// A bit for each key that has an object; 0 in a free slot of the table.
    var bits: UInt32 = 0
    /// The number of addresses that fit at `content`; 0 where it is the object.
    var capacity: UInt32 = 0

    @inline(__always)
    var objects: UnsafeMutablePointer<UnsafeRawPointer>? {
      content?.assumingMemoryBound(to: UnsafeRawPointer.self)
    }

    /// Whether the block has a slot for each key.
    @inline(__always)
    var isWide: Bool { capacity == ObjectTable.width }

    /// The index of a key's object in `objects`, or the index at which it would be inserted.
    @inline(__always)
    func place(_ key: Int64) -> Int {
      if isWide { return Int(truncatingIfNeeded: key) & Int(ObjectTable.width - 1) }
      return (bits & (ObjectTable.bit(key) - 1)).nonzeroBitCount
    }
  }

  private var blocks: UnsafeMutablePointer<Block>
  private var mask: Int
  private var blockCount = 0
  package private(set) var count = 0

  private static let smallest = 16
  private static let blockBits = 5
  /// The number of keys of a block.
  private static let width: UInt32 = 1 << blockBits

  package init() {
    blocks = Self.make(Self.smallest)
    mask = Self.smallest - 1
  }

  deinit {
    for index in 0...mask where blocks[index].capacity > 0 { blocks[index].content?.deallocate() }
    blocks.deallocate()
  }

  private static func make(_ capacity: Int) -> UnsafeMutablePointer<Block> {
    let made = UnsafeMutablePointer<Block>.allocate(capacity: capacity)
    made.initialize(repeating: Block(), count: capacity)
    return made
  }

  @inline(__always)
  private static func home(_ word: UInt64, _ keys: Int64, _ mask: Int) -> Int {
    var hash = UInt64(bitPattern: keys) ^ (word &* 0x9E37_79B9_7F4A_7C15)
    hash = hash &* 0xD6E8_FEB8_6659_FD93
    hash ^= hash >> 32
    return Int(truncatingIfNeeded: hash) & mask
  }

  /// The index of a block, or the free slot where it would be inserted.
  @inline(__always)
  private func place(_ word: UInt64, _ keys: Int64) -> Int {
    var index = Self.home(word, keys, mask)
    while blocks[index].bits != 0 {
      if blocks[index].keys == keys, blocks[index].word == word { return index }
      index = (index + 1) & mask
    }
    return index
  }

  @inline(__always)
  private static func bit(_ key: Int64) -> UInt32 { 1 << UInt32(truncatingIfNeeded: key & 31) }

  @inline(__always)
  package func object(_ word: UInt64, _ key: Int64) -> UnsafeRawPointer? {
    let block = blocks[place(word, key >> Self.blockBits)]
    let bit = Self.bit(key)
    guard block.bits & bit != 0 else { return nil }
    if block.capacity == 0 { return UnsafeRawPointer(block.content) }
    return block.objects?[block.place(key)]
  }

  /// Inserts an object, or replaces the one with the same key.
  package mutating func insert(_ object: UnsafeRawPointer, _ word: UInt64, _ key: Int64) {
    if blockCount * 4 >= (mask + 1) * 3 { resize((mask + 1) * 2) }
    let index = place(word, key >> Self.blockBits)
    let bit = Self.bit(key)
    if blocks[index].bits == 0 {
      blocks[index] = Block(
        word: word,
        keys: key >> Self.blockBits,
        content: UnsafeMutableRawPointer(mutating: object),
        bits: bit
      )
      blockCount += 1
      count += 1
      return
    }
    if blocks[index].bits & bit != 0 {
      if blocks[index].capacity == 0 {
        blocks[index].content = UnsafeMutableRawPointer(mutating: object)
      } else {
        blocks[index].objects?[blocks[index].place(key)] = object
      }
      return
    }
    let held = blocks[index].bits.nonzeroBitCount
    if held >= Int(blocks[index].capacity) { grow(index, held) }
    guard let objects = blocks[index].objects else { return }
    let place = blocks[index].place(key)
    if !blocks[index].isWide {
      (objects + place + 1).update(from: objects + place, count: held - place)
    }
    objects[place] = object
    blocks[index].bits |= bit
    count += 1
  }

  private mutating func grow(_ index: Int, _ held: Int) {
    let capacity = held < 4 ? 4 : min(held * 2, Int(Self.width))
    let grown = UnsafeMutablePointer<UnsafeRawPointer>.allocate(capacity: capacity)
    let block = blocks[index]
    if block.capacity == 0, let only = block.content {
      grown.initialize(to: UnsafeRawPointer(only))
    } else if let objects = block.objects {
      if capacity == Int(Self.width) {
        Self.spread(objects, block.bits, to: grown)
      } else {
        grown.initialize(from: objects, count: held)
      }
      objects.deallocate()
    }
    blocks[index].content = UnsafeMutableRawPointer(grown)
    blocks[index].capacity = UInt32(capacity)
  }

  /// Moves objects without gaps to the slots of their keys.
  private static func spread(
    _ objects: UnsafeMutablePointer<UnsafeRawPointer>,
    _ bits: UInt32,
    to target: UnsafeMutablePointer<UnsafeRawPointer>
  ) {
    var bits = bits
    var source = objects
    while bits != 0 {
      (target + bits.trailingZeroBitCount).initialize(to: source.pointee)
      source += 1
      bits &= bits - 1
    }
  }

  /// Removes the object of a key, or only if it is a given one.
  package mutating func remove(
    _ word: UInt64,
    _ key: Int64,
    ifHolding expected: UnsafeRawPointer? = nil
  ) {
    let index = place(word, key >> Self.blockBits)
    let bit = Self.bit(key)
    let block = blocks[index]
    guard block.bits & bit != 0 else { return }
    if block.capacity == 0 {
      guard expected == nil || block.content.map(UnsafeRawPointer.init) == expected else { return }
    } else if let objects = block.objects {
      let place = block.place(key)
      guard expected == nil || objects[place] == expected else { return }
      if !block.isWide {
        let behind = block.bits.nonzeroBitCount - place - 1
        (objects + place).update(from: objects + place + 1, count: behind)
      }
    }
    blocks[index].bits &= ~bit
    count -= 1
    if blocks[index].bits == 0 { removeBlock(index) }
  }

  private mutating func removeBlock(_ index: Int) {
    if blocks[index].capacity > 0 { blocks[index].content?.deallocate() }
    // Blocks that would have used this slot are moved up, so that no search ends too early.
    var hole = index
    var next = index
    while true {
      next = (next + 1) & mask
      guard blocks[next].bits != 0 else { break }
      let home = Self.home(blocks[next].word, blocks[next].keys, mask)
      if (next - home) & mask >= (next - hole) & mask {
        blocks[hole] = blocks[next]
        hole = next
      }
    }
    blocks[hole] = Block()
    blockCount -= 1
    if mask > 4096, blockCount * 8 < mask { resize((mask + 1) / 2) }
  }

  private mutating func resize(_ capacity: Int) {
    let old = blocks
    let oldCount = mask + 1
    blocks = Self.make(capacity)
    mask = capacity - 1
    for index in 0..<oldCount where old[index].bits != 0 {
      blocks[place(old[index].word, old[index].keys)] = old[index]
    }
    old.deallocate()
  }

  /// Calls the body with every object, in no order.
  package func forEach(_ body: (UnsafeRawPointer) -> Void) {
    for index in 0...mask where blocks[index].bits != 0 {
      if blocks[index].capacity == 0 {
        if let only = blocks[index].content { body(UnsafeRawPointer(only)) }
      } else if let objects = blocks[index].objects {
        var bits = blocks[index].bits
        var place = 0
        while bits != 0 {
          body(objects[blocks[index].isWide ? bits.trailingZeroBitCount : place])
          place += 1
          bits &= bits - 1
        }
      }
    }
  }

  package mutating func removeAll() {
    self = ObjectTable()
  }

  // MARK: Invariants

  /// The broken invariants, a sentence each.
  package func brokenInvariants() -> [String] {
    var broken: [String] = []
    var objects = 0
    var used = 0
    for index in 0...mask where blocks[index].bits != 0 {
      let block = blocks[index]
      let held = block.bits.nonzeroBitCount
      used += 1
      objects += held
      if place(block.word, block.keys) != index {
        broken.append("the block at \(index) is not where a search for it ends")
      }
      if block.content == nil { broken.append("the block at \(index) has no content") }
      if held > max(1, Int(block.capacity)) {
        broken.append("the block at \(index) holds \(held) objects in room for \(block.capacity)")
      }
    }
    if used != blockCount { broken.append("\(used) blocks are used, \(blockCount) are counted") }
    if objects != count { broken.append("\(objects) objects are there, \(count) are counted") }
    if used > mask { broken.append("no slot is free, so that a search would not end") }
    return broken
  }
}
