/// A set of small numbers: the slots of an object that changed.
///
/// Entities rarely have more than 64 properties of a kind, so one word holds most sets.
struct SlotSet: Sendable, Equatable {
  private var word: UInt64 = 0
  private var more: [UInt64]?

  @inline(__always)
  var isEmpty: Bool { word == 0 && (more?.allSatisfy { $0 == 0 } ?? true) }

  @inline(__always)
  func contains(_ slot: Int) -> Bool {
    slot < 64 ? word & (1 << UInt64(slot)) != 0 : containsRare(slot)
  }

  private func containsRare(_ slot: Int) -> Bool {
    guard let more, slot / 64 <= more.count else { return false }
    return more[slot / 64 - 1] & (1 << UInt64(slot % 64)) != 0
  }

  @inline(__always)
  mutating func insert(_ slot: Int) {
    if slot < 64 { word |= 1 << UInt64(slot) } else { insertRare(slot) }
  }

  private mutating func insertRare(_ slot: Int) {
    var words = more ?? []
    while words.count < slot / 64 { words.append(0) }
    words[slot / 64 - 1] |= 1 << UInt64(slot % 64)
    more = words
  }

  mutating func remove(_ slot: Int) {
    if slot < 64 {
      word &= ~(1 << UInt64(slot))
    } else if more != nil, contains(slot) {
      more?[slot / 64 - 1] &= ~(1 << UInt64(slot % 64))
    }
  }

  mutating func removeAll() {
    word = 0
    more = nil
  }

  mutating func formUnion(_ other: SlotSet) {
    word |= other.word
    guard other.more != nil else { return }
    for slot in other.slots where slot >= 64 { insert(slot) }
  }

  /// The slots in ascending order.
  var slots: [Int] {
    var result: [Int] = []
    func collect(_ bits: UInt64, from base: Int) {
      var bits = bits
      while bits != 0 {
        result.append(base + bits.trailingZeroBitCount)
        bits &= bits - 1
      }
    }
    collect(word, from: 0)
    for (index, bits) in (more ?? []).enumerated() { collect(bits, from: 64 * (index + 1)) }
    return result
  }
}
