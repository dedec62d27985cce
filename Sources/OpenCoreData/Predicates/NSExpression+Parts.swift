import Foundation

extension NSExpression {
  /// The value of a constant expression.
  public var constantValue: Any? {
    guard case .constant(let constant) = tree else { return nil }
    return constant.isNull ? NSNull() : constant.raw
  }

  /// The key path of a key path expression; empty for other kinds.
  public var keyPath: String {
    if case .keyPath(_, let keys) = tree { return keys.joined(separator: ".") }
    return ""
  }

  /// The selector name of a function expression; empty for other kinds.
  public var function: String {
    switch tree {
    case .function(let name, _): name
    case .call(_, let selector, _): selector
    default: ""
    }
  }

  /// The name of a variable expression; empty for other kinds.
  public var variable: String {
    switch tree {
    case .variable(let name), .subquery(_, let name, _): name
    default: ""
    }
  }

  /// The target of a function or a key path.
  public var operand: NSExpression {
    switch tree {
    case .call(let target, _, _), .keyPath(let target, _): NSExpression(tree: target)
    default: self
    }
  }

  /// The arguments of a function or a block.
  public var arguments: [NSExpression]? {
    switch tree {
    case .function(_, let arguments), .call(_, _, let arguments), .block(_, let arguments):
      arguments.map { NSExpression(tree: $0) }
    default: nil
    }
  }

  /// The members of an aggregate, or the collection of a subquery.
  public var collection: Any? {
    switch tree {
    case .aggregate(let members): members.map { NSExpression(tree: $0) }
    case .subquery(let collection, _, _): NSExpression(tree: collection)
    default: nil
    }
  }

  /// The predicate of a subquery or a conditional; true for other kinds.
  public var predicate: NSPredicate {
    switch tree {
    case .subquery(_, _, let predicate), .conditional(let predicate, _, _):
      NSPredicate.make(predicate)
    default: ConstantPredicate(true)
    }
  }

  /// The left operand of a set expression.
  public var left: NSExpression {
    if case .set(_, let left, _) = tree { return NSExpression(tree: left) }
    return self
  }

  /// The right operand of a set expression.
  public var right: NSExpression {
    if case .set(_, _, let right) = tree { return NSExpression(tree: right) }
    return self
  }

  /// The expression of a conditional whose predicate is true.
  public var `true`: NSExpression {
    if case .conditional(_, let first, _) = tree { return NSExpression(tree: first) }
    return self
  }

  /// The expression of a conditional whose predicate is false.
  public var `false`: NSExpression {
    if case .conditional(_, _, let second) = tree { return NSExpression(tree: second) }
    return self
  }

  /// The closure of a block expression; it returns nil for other kinds.
  public var expressionBlock: (Any?, [Any], NSMutableDictionary?) -> Any {
    if case .block(let block, _) = tree { return block.body }
    return { _, _, _ in NSNull() }
  }
}

extension NSExpression.ExpressionType {
  /// The type of a tree.
  init(_ tree: ExpressionTree) {
    switch tree {
    case .constant: self = .constantValue
    case .evaluatedObject: self = .evaluatedObject
    case .variable: self = .variable
    case .keyPath(.evaluatedObject, _): self = .keyPath
    // As in Apple's framework, a key path on another operand is the function `valueForKeyPath:`.
    case .keyPath, .function, .call: self = .function
    case .aggregate: self = .aggregate
    case .subquery: self = .subquery
    case .set(.union, _, _): self = .unionSet
    case .set(.intersect, _, _): self = .intersectSet
    case .set(.minus, _, _): self = .minusSet
    case .conditional: self = .conditional
    case .fetch: self = .fetchRequest
    case .anyKey: self = .anyKey
    case .block: self = .block
    }
  }
}
