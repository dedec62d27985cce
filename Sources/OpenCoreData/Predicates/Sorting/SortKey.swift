import Foundation

/// The contents of a sort descriptor, for the evaluator and the SQL writer.
package struct SortKey: @unchecked Sendable {
  // Unchecked: the thread safety of a comparator is its author's responsibility, as with Apple.

  /// The key path, split at its dots; empty to sort by the object itself.
  package var keys: [String]
  package var ascending: Bool
  package var ordering: SortOrdering
  /// A custom comparator.
  ///
  /// It is used in memory only.
  package var comparator: Comparator?

  package init(
    keys: [String],
    ascending: Bool,
    ordering: SortOrdering = .literal,
    comparator: Comparator? = nil
  ) {
    self.keys = keys
    self.ascending = ascending
    self.ordering = ordering
    self.comparator = comparator
  }

  /// Whether the orders are the same; false where one has a comparator, as closures cannot be compared.
  func isEqual(to other: SortKey) -> Bool {
    keys == other.keys && ascending == other.ascending && ordering == other.ordering
      && comparator == nil && other.comparator == nil
  }

  /// Nil first, then by value; values without an order keep their positions.
  package func order(_ left: ExpressionValue, _ right: ExpressionValue) -> ComparisonResult {
    let order: ComparisonResult
    switch (left.isNull, right.isNull) {
    case (true, true): order = .orderedSame
    case (true, false): order = .orderedAscending
    case (false, true): order = .orderedDescending
    case (false, false): order = left.order(to: right) ?? .orderedSame
    }
    return ascending ? order : order.reversed
  }

  /// The value to sort by, computed once for each object: strings become keys of the ordering.
  package func value(of object: Any?) -> ExpressionValue {
    let value = ExpressionValue(KeyPathWalk.value(of: object, keys))
    if ordering != .literal, let text = value.text { return .string(ordering.key(text)) }
    return value
  }

  func compare(_ left: Any, _ right: Any) -> ComparisonResult {
    guard let comparator else { return order(value(of: left), value(of: right)) }
    let first = KeyPathWalk.value(of: left, keys) ?? NSNull()
    let second = KeyPathWalk.value(of: right, keys) ?? NSNull()
    let order = comparator(first, second)
    return ascending ? order : order.reversed
  }
}
