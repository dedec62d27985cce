import WatershedSQLite

/// Splits sorted keys into portions, each with the SQL condition that selects them.
///
/// Keys that are nearly consecutive are read as a range, which is several times faster than a list;
/// the reader skips rows that were not asked for. Lists have few sizes, so that few statements are
/// compiled for any number of keys.
struct KeySpans: Sequence, IteratorProtocol {
  private let keys: [Int64]
  private var position = 0

  /// The most keys that one range selects.
  private static let rangeLimit = 4096
  /// The fewest keys that are read as a range.
  private static let rangeMinimum = 8
  private static let lists: [(width: Int, condition: String)] = [1, 8, 64, 512].map { width in
    let marks = Array(repeating: "?", count: width).joined(separator: ", ")
    return (width, width == 1 ? "= ?" : "IN (\(marks))")
  }

  /// The keys must be ascending.
  init(_ keys: [Int64]) {
    self.keys = keys
  }

  mutating func next() -> KeySpan? {
    guard position < keys.count, let longest = Self.lists.last else { return nil }
    for limit in [Self.rangeLimit, longest.width] {
      let end = Swift.min(position + limit, keys.count)
      let count = end - position
      guard count >= Self.rangeMinimum else { break }
      let (width, overflow) = keys[end - 1].subtractingReportingOverflow(keys[position])
      if !overflow, width < count * 2 { return take(end, "BETWEEN ? AND ?", width: 0) }
    }
    let left = keys.count - position
    let list = Self.lists.first { $0.width >= left } ?? longest
    return take(Swift.min(position + list.width, keys.count), list.condition, width: list.width)
  }

  private mutating func take(_ end: Int, _ condition: String, width: Int) -> KeySpan {
    defer { position = end }
    return KeySpan(keys: keys, indices: position..<end, condition: condition, width: width)
  }
}

/// A portion of sorted keys.
struct KeySpan {
  let keys: [Int64]
  let indices: Range<Int>
  /// The SQL after the column's name.
  let condition: String
  /// The parameters of a list; 0 for a range.
  let width: Int

  /// Binds the keys; unused parameters of a list repeat the last key.
  func bind(to statement: SQLiteStatement) {
    let last = keys[indices.upperBound - 1]
    if width == 0 {
      statement.bind(keys[indices.lowerBound], at: 1)
      statement.bind(last, at: 2)
      return
    }
    var parameter = 1
    for index in indices {
      statement.bind(keys[index], at: parameter)
      parameter += 1
    }
    while parameter <= width {
      statement.bind(last, at: parameter)
      parameter += 1
    }
  }

  func cursor() -> KeyCursor { KeyCursor(keys: keys, indices: indices) }
}

/// Finds keys in a sorted array, fastest where they are looked up in ascending order.
struct KeyCursor {
  private let keys: [Int64]
  private let indices: Range<Int>
  private var position: Int

  init(keys: [Int64], indices: Range<Int>) {
    self.keys = keys
    self.indices = indices
    position = indices.lowerBound
  }

  /// The first index of the key; nil where the array does not have it.
  mutating func find(_ key: Int64) -> Int? {
    if position > indices.lowerBound, keys[position - 1] >= key { position = search(key) }
    while position < indices.upperBound, keys[position] < key { position += 1 }
    return position < indices.upperBound && keys[position] == key ? position : nil
  }

  /// The first index whose key is not smaller.
  private func search(_ key: Int64) -> Int {
    var (low, high) = (indices.lowerBound, indices.upperBound)
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
