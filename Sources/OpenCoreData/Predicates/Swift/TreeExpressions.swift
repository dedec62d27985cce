import Foundation

// The expressions of Foundation's predicates, each converted to an equivalent tree.

private typealias Conversion = PredicateConversion

extension PredicateExpressions.Value: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    let constant = ExpressionConstant(value)
    if case .opaque = constant.value { throw Conversion.Unsupported() }
    return .value(.constant(constant))
  }
}

extension PredicateExpressions.NilLiteral: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .value(.value(nil))
  }
}

extension PredicateExpressions.Variable: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .value(try conversion.tree(of: key))
  }
}

extension PredicateExpressions.KeyPath: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    let base = try conversion.value(root)
    if let keys = PropertyKeyPaths.keys(of: keyPath) {
      return .value(keys.reduce(base) { Self.appending($1, to: $0) })
    }
    // Only the count of a collection or a string is supported, and whether it is 0.
    let count: ExpressionTree
    if Root.Output.self == String.self {
      count = .applying(.length, [base])
    } else if Root.Output.self is any Collection.Type {
      count = .keyPath(base, ["@count"])
    } else {
      throw Conversion.Unsupported()
    }
    if Output.self == Int.self { return .value(Self.flat(count)) }
    guard Output.self == Bool.self else { throw Conversion.Unsupported() }
    return .predicate(.comparison(ComparisonTree(Self.flat(count), .equal, .value(0))))
  }

  private static func appending(_ key: String, to base: ExpressionTree) -> ExpressionTree {
    if case .keyPath(let root, let path) = base { return .keyPath(root, path + [key]) }
    return .keyPath(base, [key])
  }

  private static func flat(_ tree: ExpressionTree) -> ExpressionTree {
    guard case .keyPath(.keyPath(let root, let path), let more) = tree else { return tree }
    return .keyPath(root, path + more)
  }
}

// MARK: Truth

extension PredicateExpressions.Conjunction: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .predicate(.and([try conversion.predicate(lhs), try conversion.predicate(rhs)]))
  }
}

extension PredicateExpressions.Disjunction: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .predicate(.or([try conversion.predicate(lhs), try conversion.predicate(rhs)]))
  }
}

extension PredicateExpressions.Negation: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .predicate(.not(try conversion.predicate(wrapped)))
  }
}

extension PredicateExpressions.Equal: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    try conversion.equality(lhs, rhs, negated: false)
  }
}

extension PredicateExpressions.NotEqual: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    try conversion.equality(lhs, rhs, negated: true)
  }
}

extension PredicateExpressions.Comparison: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    let kind: ComparisonKind =
      switch op {
      case .lessThan: .lessThan
      case .lessThanOrEqual: .lessThanOrEqual
      case .greaterThan: .greaterThan
      case .greaterThanOrEqual: .greaterThanOrEqual
      @unknown default: throw Conversion.Unsupported()
      }
    return try conversion.comparison(lhs, kind, rhs)
  }
}

extension PredicateExpressions.Conditional: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    let test = try conversion.predicate(test)
    if Output.self == Bool.self {
      let first = try conversion.predicate(trueBranch)
      let second = try conversion.predicate(falseBranch)
      return .predicate(.or([.and([test, first]), .and([.not(test), second])]))
    }
    return .value(
      .conditional(
        test,
        try conversion.value(trueBranch),
        try conversion.value(falseBranch)
      )
    )
  }
}

// MARK: Optionals

extension PredicateExpressions.OptionalFlatMap: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    let tree = try conversion.value(wrapped)
    conversion.bind(variable, to: tree)
    switch try conversion.convert(transform) {
    // A key path on nil is nil by itself.
    case .value(let value): return .value(value)
    case .predicate(let predicate): return .optional(isNil: Conversion.isNil(tree), predicate)
    case .optional(let isNil, let predicate):
      return .optional(isNil: .or([Conversion.isNil(tree), isNil]), predicate)
    }
  }
}

extension PredicateExpressions.NilCoalesce: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    switch try conversion.convert(lhs) {
    case .predicate(let predicate): return .predicate(predicate)
    case .optional(let isNil, let predicate):
      let other = try conversion.predicate(rhs)
      return .predicate(.or([.and([.not(isNil), predicate]), .and([isNil, other])]))
    case .value(let value):
      return .value(
        .conditional(.not(Conversion.isNil(value)), value, try conversion.value(rhs))
      )
    }
  }
}

extension PredicateExpressions.ForcedUnwrap: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    try conversion.convert(inner)
  }
}

// MARK: Numbers

extension PredicateExpressions.Arithmetic: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    let function: PredicateFunction =
      switch op {
      case .add: .add
      case .subtract: .subtract
      case .multiply: .multiply
      @unknown default: throw Conversion.Unsupported()
      }
    return .value(.applying(function, [try conversion.value(lhs), try conversion.value(rhs)]))
  }
}

extension PredicateExpressions.FloatDivision: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .value(.applying(.divide, [try conversion.value(lhs), try conversion.value(rhs)]))
  }
}

extension PredicateExpressions.IntDivision: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .value(.applying(.divide, [try conversion.value(lhs), try conversion.value(rhs)]))
  }
}

extension PredicateExpressions.IntRemainder: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .value(.applying(.modulus, [try conversion.value(lhs), try conversion.value(rhs)]))
  }
}

extension PredicateExpressions.UnaryMinus: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .value(.applying(.subtract, [.value(0), try conversion.value(wrapped)]))
  }
}

extension PredicateExpressions.SequenceMaximum: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .value(.applying(.maximum, [try conversion.value(elements)]))
  }
}

extension PredicateExpressions.SequenceMinimum: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .value(.applying(.minimum, [try conversion.value(elements)]))
  }
}

// MARK: Ranges

/// A range whose bounds are expressions.
private protocol BoundedExpression {
  func bounds(
    _ conversion: inout PredicateConversion
  ) throws -> (ExpressionTree, ComparisonKind, ExpressionTree)
}

extension PredicateExpressions.Range: BoundedExpression {
  fileprivate func bounds(
    _ conversion: inout PredicateConversion
  ) throws -> (ExpressionTree, ComparisonKind, ExpressionTree) {
    (try conversion.value(lower), .lessThan, try conversion.value(upper))
  }
}

extension PredicateExpressions.ClosedRange: BoundedExpression {
  fileprivate func bounds(
    _ conversion: inout PredicateConversion
  ) throws -> (ExpressionTree, ComparisonKind, ExpressionTree) {
    (try conversion.value(lower), .lessThanOrEqual, try conversion.value(upper))
  }
}

/// A range that is a constant.
private protocol ConstantRange {
  var constantBounds: (Any, ComparisonKind, Any) { get }
}

extension Range: ConstantRange {
  fileprivate var constantBounds: (Any, ComparisonKind, Any) {
    (lowerBound, .lessThan, upperBound)
  }
}

extension ClosedRange: ConstantRange {
  fileprivate var constantBounds: (Any, ComparisonKind, Any) {
    (lowerBound, .lessThanOrEqual, upperBound)
  }
}

/// An expression that is a constant.
private protocol ConstantExpression {
  var constant: Any { get }
}

extension PredicateExpressions.Value: ConstantExpression {
  fileprivate var constant: Any { value }
}

extension PredicateExpressions.RangeExpressionContains: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    let element = try conversion.value(element)
    let (lower, kind, upper): (ExpressionTree, ComparisonKind, ExpressionTree)
    if let range = range as? any BoundedExpression {
      (lower, kind, upper) = try range.bounds(&conversion)
    } else if let range = (range as? any ConstantExpression)?.constant as? any ConstantRange {
      let bounds = range.constantBounds
      (lower, kind, upper) = (.value(bounds.0), bounds.1, .value(bounds.2))
    } else {
      throw Conversion.Unsupported()
    }
    return .predicate(
      .and([
        .comparison(ComparisonTree(element, .greaterThanOrEqual, lower)),
        .comparison(ComparisonTree(element, kind, upper)),
      ])
    )
  }
}

// MARK: Collections and texts

extension PredicateExpressions.SequenceContains: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    try conversion.comparison(element, .in, sequence)
  }
}

extension PredicateExpressions.SequenceContainsWhere: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    let matches = try conversion.subquery(sequence, variable, test)
    return .predicate(
      .comparison(ComparisonTree(.keyPath(matches, ["@count"]), .greaterThan, .value(0)))
    )
  }
}

extension PredicateExpressions.SequenceAllSatisfy: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    let others = try conversion.subquery(sequence, variable, test, negated: true)
    return .predicate(
      .comparison(ComparisonTree(.keyPath(others, ["@count"]), .equal, .value(0)))
    )
  }
}

extension PredicateExpressions.Filter: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    .value(try conversion.subquery(sequence, variable, filter))
  }
}

extension PredicateExpressions.SequenceStartsWith: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    try conversion.comparison(base, .beginsWith, prefix)
  }
}

extension PredicateExpressions.CollectionContainsCollection: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    try conversion.comparison(base, .contains, other)
  }
}
