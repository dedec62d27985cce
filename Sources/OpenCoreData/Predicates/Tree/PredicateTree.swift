import Foundation

/// A predicate as a value, which the parser makes and the evaluator and the SQL writer read.
///
/// It means the same to all readers. Two rules settle what nil and conflicting kinds mean:
///
/// - **Every comparison is true or false, never unknown.** `nil == nil` is true and
///   `nil != value` is true. An ordering, a range or a string operator with nil on either side is
///   false. `NOT` turns exactly these answers round, so `NOT (nil < 5)` is true.
/// - **Values of different kinds are not equal and have no order**: a number and a string, a date
///   and a number. Integers, doubles, decimals and Booleans are all numbers; a URL is its text and
///   a UUID its sixteen bytes.
/// - **`ANY` and `ALL` see nil as an empty collection** and any other single value as a collection
///   of one: `ANY` of nil is false, `ALL` of nil is true.
package indirect enum PredicateTree: Sendable {
  case constant(Bool)
  case comparison(ComparisonTree)
  case and([PredicateTree])
  case or([PredicateTree])
  case not(PredicateTree)
  /// A predicate in which a `$variable` stands for a whole predicate is not supported by Core
  /// Data; what is opaque is a block, or a subclass of the user's. Memory only.
  case opaque(OpaquePredicate)
}

/// Two expressions and how they compare.
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

/// Wraps a predicate that cannot be looked into.
package struct OpaquePredicate: @unchecked Sendable {
  // Unchecked: Foundation's predicates are immutable; what a block captures is its author's affair.
  package let predicate: NSPredicate

  package init(_ predicate: NSPredicate) {
    self.predicate = predicate
  }
}
