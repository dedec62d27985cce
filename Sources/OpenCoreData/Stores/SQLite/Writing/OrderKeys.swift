/// Chooses the sparse keys by which an ordered to-many is sorted.
enum OrderKeys {
  /// The distance between two new keys, so that most insertions leave the neighbours' keys
  /// unchanged.
  static let gap: Int64 = 1024

  /// Returns ascending keys: members already in order keep theirs, the others get keys between or
  /// after them.
  static func keys(for current: [Int64?]) -> [Int64] {
    let kept = keptIndexes(current)
    var result: [Int64] = []
    result.reserveCapacity(current.count)
    var previous: Int64 = 0
    var nextKept = 0
    for index in current.indices {
      if nextKept < kept.count, kept[nextKept] == index, let key = current[index], key > previous {
        result.append(key)
        previous = key
        nextKept += 1
        continue
      }
      if nextKept < kept.count, kept[nextKept] == index { nextKept += 1 }
      let upper = nextKept < kept.count ? current[kept[nextKept]] : nil
      let key: Int64
      if let upper, upper - previous > 1 {
        // Leave room for the other members that need keys in the same gap.
        let waiting = Int64(kept[nextKept] - index)
        key = previous + max(1, (upper - previous) / (waiting + 1))
      } else {
        key = previous + (upper == nil ? gap : 1)
      }
      result.append(key)
      previous = key
    }
    return result
  }

  /// The indexes of a longest ascending subsequence of keys.
  private static func keptIndexes(_ keys: [Int64?]) -> [Int] {
    var tails: [Int] = []
    var before: [Int?] = Array(repeating: nil, count: keys.count)
    for index in keys.indices {
      guard let key = keys[index], key > 0 else { continue }
      var low = 0
      var high = tails.count
      while low < high {
        let middle = (low + high) / 2
        if (keys[tails[middle]] ?? 0) < key { low = middle + 1 } else { high = middle }
      }
      before[index] = low > 0 ? tails[low - 1] : nil
      if low == tails.count { tails.append(index) } else { tails[low] = index }
    }
    var result: [Int] = []
    var current = tails.last
    while let index = current {
      result.append(index)
      current = before[index]
    }
    return result.reversed()
  }
}
