import OpenCoreData

/// An insertion, and the opening of the store in which it was made.
struct NamedInsertion {
  var opening: String
  var row: RowInsertion
}

/// The openings of a store whose insertions may have no names yet, oldest first.
struct StoreOpenings {
  private var openings: [(after: Int64, identifier: String)]

  /// Reads what `text` has written.
  init(_ text: String) {
    openings = text.split(separator: "\n").compactMap { line in
      let parts = line.split(separator: " ")
      guard parts.count == 2, let after = Int64(parts[0]) else { return nil }
      return (after, String(parts[1]))
    }
  }

  /// A line for each opening: the last transaction before it, and its identifier.
  var text: String {
    openings.map { "\($0.after) \($0.identifier)" }.joined(separator: "\n")
  }

  /// The number of openings that are remembered: they become more with each launch as long as no user signs
  /// in, and nothing is named.
  private static let limit = 500

  /// The latest opening.
  var last: (after: Int64, identifier: String)? { openings.last }

  /// The opening follows a transaction.
  mutating func add(after transaction: Int64, _ identifier: String) {
    // Nothing was inserted during an opening that the next one follows at once.
    if openings.last?.after == transaction { openings.removeLast() }
    openings.append((transaction, identifier))
    openings.removeFirst(max(0, openings.count - Self.limit))
  }

  /// Forgets each opening that ended with this transaction or before it: its insertions have record names.
  mutating func forget(upTo transaction: Int64) {
    while openings.count > 1, openings[1].after <= transaction { openings.removeFirst() }
  }

  func named(_ insertion: RowInsertion) -> NamedInsertion {
    let opening = openings.last { $0.after < insertion.transactionNumber }
    return NamedInsertion(opening: opening?.identifier ?? "", row: insertion)
  }
}
