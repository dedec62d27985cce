import Foundation

/// Converts the expressions of a Swift `Predicate` to trees.
///
/// An expression without an equivalent throws ``PredicateConversion/Unsupported``.
struct PredicateConversion {
  struct Unsupported: Error {}

  /// The result of converting an expression.
  enum Result {
    case value(ExpressionTree)
    case predicate(PredicateTree)
    /// A Boolean that is nil if the first predicate is true.
    case optional(isNil: PredicateTree, PredicateTree)
  }

  private var variables: [PredicateExpressions.VariableID: ExpressionTree] = [:]
  private var count = 0

  mutating func bind<Value>(
    _ variable: PredicateExpressions.Variable<Value>,
    to tree: ExpressionTree
  ) {
    variables[variable.key] = tree
  }

  /// Binds the variable to a unique name.
  mutating func iterate<Value>(_ variable: PredicateExpressions.Variable<Value>) -> String {
    count += 1
    let name = "item\(count)"
    bind(variable, to: .variable(name))
    return name
  }

  func tree(of variable: PredicateExpressions.VariableID) throws -> ExpressionTree {
    guard let tree = variables[variable] else { throw Unsupported() }
    return tree
  }

  mutating func convert(_ expression: Any) throws -> Result {
    guard let expression = expression as? any TreeExpression else { throw Unsupported() }
    return try expression.converted(&self)
  }

  /// The expression as a value; a Boolean becomes 1 or 0.
  mutating func value(_ expression: Any) throws -> ExpressionTree {
    switch try convert(expression) {
    case .value(let tree): return tree
    case .predicate(let predicate):
      return .conditional(predicate, .value(true), .value(false))
    case .optional(let isNil, let predicate):
      return .conditional(
        isNil,
        .value(nil),
        .conditional(predicate, .value(true), .value(false))
      )
    }
  }

  /// The expression as a predicate; a Boolean property is compared with true.
  mutating func predicate(_ expression: Any) throws -> PredicateTree {
    switch try convert(expression) {
    case .predicate(let predicate): return predicate
    case .optional(let isNil, let predicate): return .and([.not(isNil), predicate])
    case .value(.constant(let constant)):
      guard case .integer(let number) = constant.value else { throw Unsupported() }
      return .constant(number != 0)
    case .value(let tree): return .comparison(ComparisonTree(tree, .equal, .value(true)))
    }
  }

  mutating func comparison(
    _ left: Any,
    _ kind: ComparisonKind,
    _ right: Any,
    options: StringComparisonOptions = []
  ) throws -> Result {
    .predicate(
      .comparison(ComparisonTree(try value(left), kind, try value(right), options: options))
    )
  }

  /// `==` and `!=`, where one side may be a Boolean.
  mutating func equality(_ left: Any, _ right: Any, negated: Bool) throws -> Result {
    let (first, second) = (try convert(left), try convert(right))
    if let result = Self.truth(first, second, negated) ?? Self.truth(second, first, negated) {
      return .predicate(result)
    }
    return .predicate(
      .comparison(
        ComparisonTree(try value(left), negated ? .notEqual : .equal, try value(right))
      )
    )
  }

  /// A Boolean that is compared with a constant.
  private static func truth(
    _ side: Result,
    _ constant: Result,
    _ negated: Bool
  ) -> PredicateTree? {
    guard case .value(.constant(let constant)) = constant else { return nil }
    let equal: PredicateTree
    switch (side, constant.value) {
    case (.predicate(let predicate), .integer(let wanted)):
      equal = wanted != 0 ? predicate : .not(predicate)
    case (.optional(let isNil, let predicate), .integer(let wanted)):
      equal = .and([.not(isNil), wanted != 0 ? predicate : .not(predicate)])
    case (.optional(let isNil, _), .null): equal = isNil
    default: return nil
    }
    return negated ? .not(equal) : equal
  }

  /// `SUBQUERY(sequence, $item, test)`.
  mutating func subquery<Element>(
    _ sequence: Any,
    _ variable: PredicateExpressions.Variable<Element>,
    _ test: Any,
    negated: Bool = false
  ) throws -> ExpressionTree {
    let collection = try value(sequence)
    let name = iterate(variable)
    let condition = try predicate(test)
    return .subquery(collection, name, negated ? .not(condition) : condition)
  }

  static func isNil(_ tree: ExpressionTree) -> PredicateTree {
    .comparison(ComparisonTree(tree, .equal, .value(nil)))
  }
}

/// An expression of a Swift predicate with an equivalent in the format language.
protocol TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result
}

extension PredicateBuilding where Self: NSPredicate {
  /// Makes a predicate that is equivalent to a Swift predicate, such as one of `#Predicate`; nil if
  /// the format language can't express it.
  ///
  /// Key paths must read properties of managed objects.
  public init?<Input: NSObject>(_ predicate: Predicate<Input>) {
    var conversion = PredicateConversion()
    conversion.bind(predicate.variable, to: .evaluatedObject)
    guard let tree = try? conversion.predicate(predicate.expression),
      let made = NSPredicate.make(tree) as? Self
    else { return nil }
    self = made
  }
}
