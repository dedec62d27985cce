import Foundation

/// A predicate as a value: the parser creates it, and the evaluator and the SQL writer read it.
///
/// Both have the same semantics. Two rules define nil and mixed types:
///
/// - **Every comparison is true or false, never unknown.** `nil == nil` is true and `nil != value`
///   is true. An ordering, a range or a string operator with nil on either side is false. `NOT`
///   inverts exactly these results, so `NOT (nil < 5)` is true.
/// - **Values of different types are not equal and have no order**: a number and a string, a date
///   and a number. Integers, doubles, decimals and Booleans are all numbers; a URL is its text and
///   a UUID its sixteen bytes.
/// - **`ANY` and `ALL` treat nil as an empty collection** and any other single value as a
///   collection of one: `ANY` of nil is false, `ALL` of nil is true.
package indirect enum PredicateTree: Sendable {
  case constant(Bool)
  case comparison(ComparisonTree)
  case and([PredicateTree])
  case or([PredicateTree])
  case not(PredicateTree)
  /// A block, or an app's subclass of `NSPredicate`; in memory only. A `$variable` in place of a
  /// whole predicate is not supported by Core Data.
  case opaque(OpaquePredicate)
}

/// A comparison of two expressions.
package struct ComparisonTree: Sendable {
  package var left: ExpressionTree
  package var right: ExpressionTree
  package var comparison: ComparisonKind
  package var modifier: ComparisonModifier
  package var options: StringComparisonOptions

  package init(
    _ left: ExpressionTree,
    _ comparison: ComparisonKind,
    _ right: ExpressionTree,
    modifier: ComparisonModifier = .direct,
    options: StringComparisonOptions = []
  ) {
    self.left = left
    self.right = right
    self.comparison = comparison
    self.modifier = modifier
    self.options = options
  }
}

/// Wraps a predicate that can't be inspected.
package struct OpaquePredicate: @unchecked Sendable {
  // Unchecked: Foundation's predicates are immutable; the captures of a block are its author's
  // responsibility.
  package let predicate: NSPredicate

  package init(_ predicate: NSPredicate) {
    self.predicate = predicate
  }
}
