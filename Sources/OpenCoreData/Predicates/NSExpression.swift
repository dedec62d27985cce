import Effects
import Foundation

/// An expression of a predicate: a constant, a key path, a function of other expressions.
///
/// ```swift
/// let expression = NSExpression(format: "rating * 2 + 1")
/// let value = expression.expressionValue(with: post, context: nil) as? Int
/// ```
///
/// An archive contains the expression in the format language. Blocks, and constants that are
/// objects, can't be written in it: such an expression is decoded as nil.
open class NSExpression: NSObject, NSSecureCoding, NSCopying {
  /// The kind of an expression.
  public enum ExpressionType: UInt, Sendable {
    /// A constant value.
    case constantValue = 0
    /// The object that is evaluated.
    case evaluatedObject = 1
    /// A variable, whose value is given when the expression is evaluated.
    case variable = 2
    /// The value of a key path.
    case keyPath = 3
    /// The result of a function.
    case function = 4
    /// The union of two collections.
    case unionSet = 5
    /// The intersection of two collections.
    case intersectSet = 6
    /// The members of one collection that another does not contain.
    case minusSet = 7
    /// The members of a collection for which a predicate is true.
    case subquery = 13
    /// Several expressions as one collection.
    case aggregate = 14
    /// Any key of a Spotlight item.
    case anyKey = 15
    /// The result of a closure.
    case block = 19
    /// One of two expressions, selected by a predicate.
    case conditional = 20
    /// The result of a fetch request; see ``NSFetchRequestExpressionType``.
    case fetchRequest = 50
  }

  package let tree: ExpressionTree
  private let type: ExpressionType

  package init(tree: ExpressionTree) {
    self.tree = tree
    type = ExpressionType(tree)
    super.init()
  }

  /// Makes an expression of a type, for subclasses that evaluate themselves.
  public init(expressionType type: ExpressionType) {
    tree = .value(nil)
    self.type = type
    super.init()
  }

  /// Whether archives of this class are read securely.
  public class var supportsSecureCoding: Bool { true }

  /// Reads an expression from an archive; nil if the archive has no valid one.
  public required init?(coder: NSCoder) {
    guard let format = coder.decodeObject(of: NSString.self, forKey: Self.formatKey) as String?,
      let tree = try? PredicateParser.expression(format, arguments: [])
    else { return nil }
    self.tree = tree
    type = ExpressionType(tree)
    super.init()
  }

  /// Writes the expression in the format language.
  open func encode(with coder: NSCoder) {
    coder.encode(PredicateFormatWriter.string(tree) as NSString, forKey: Self.formatKey)
  }

  private static let formatKey = "format"

  /// Makes an expression from a format string and the values for it.
  public convenience init(format expressionFormat: String, _ arguments: Any?...) {
    self.init(tree: Self.parsed(expressionFormat, arguments))
  }

  /// Makes an expression from a format string and the values for it.
  public convenience init(format expressionFormat: String, argumentArray arguments: [Any]) {
    self.init(tree: Self.parsed(expressionFormat, arguments))
  }

  private static func parsed(_ format: String, _ arguments: [Any?]) -> ExpressionTree {
    do {
      return try PredicateParser.expression(format, arguments: arguments)
    } catch {
      fatalError("\(error)")
    }
  }

  /// Makes an expression of a constant value.
  ///
  /// A nil inside of an `Any`, which a generic function passes for its optional, is `NSNull`, as
  /// Objective-C gets it.
  public convenience init(forConstantValue obj: Any?) {
    let isNull = obj != nil && flattened(obj) == nil
    self.init(tree: .value(isNull ? NSNull() : obj))
  }

  /// The expression of the evaluated object, `SELF`.
  open class func expressionForEvaluatedObject() -> NSExpression {
    NSExpression(tree: .evaluatedObject)
  }

  /// The expression of any key of a Spotlight item.
  open class func expressionForAnyKey() -> NSExpression {
    NSExpression(tree: .anyKey)
  }

  /// Makes an expression of a variable, `$name`.
  public convenience init(forVariable string: String) {
    self.init(tree: .variable(string))
  }

  /// Makes an expression of a key path on the evaluated object.
  public convenience init(forKeyPath keyPath: String) {
    self.init(tree: .keyPath(keyPath))
  }

  /// Makes an expression of a Swift key path to a managed object's property.
  ///
  /// A key path that reads no property stops the process, as with Apple.
  public convenience init<Root, Value>(forKeyPath keyPath: KeyPath<Root, Value>) {
    guard let keys = PropertyKeyPaths.keys(of: keyPath) else {
      InvalidArgument.stop("The key path \(keyPath) reads no property of a managed object")
    }
    self.init(tree: keys.isEmpty ? .evaluatedObject : .keyPath(keys.joined(separator: ".")))
  }

  /// Makes an expression of a predefined function, such as `sum:` or `add:to:`.
  ///
  /// An unknown name stops the process, as with Apple.
  public convenience init(forFunction name: String, arguments parameters: [Any]) {
    let trees = parameters.map { ($0 as? NSExpression)?.tree ?? ExpressionTree.value($0) }
    guard let known = PredicateFunction.named(name, operandCount: trees.count) else {
      fatalError(
        "\(name) with \(trees.count) arguments is not a supported method."
      )
    }
    self.init(tree: .applying(known, trees))
  }

  /// Makes an expression of a method on the target.
  public convenience init(
    forFunction target: NSExpression,
    selectorName name: String,
    arguments parameters: [Any]?
  ) {
    let trees = (parameters ?? []).map { ($0 as? NSExpression)?.tree ?? ExpressionTree.value($0) }
    self.init(tree: .call(target.tree, name, trees))
  }

  /// Makes an expression of several expressions as one collection.
  public convenience init(forAggregate subexpressions: [Any]) {
    self.init(
      tree: .aggregate(
        subexpressions.map { ($0 as? NSExpression)?.tree ?? ExpressionTree.value($0) }
      )
    )
  }

  /// Makes an expression of the members of both collections.
  public convenience init(forUnionSet left: NSExpression, with right: NSExpression) {
    self.init(tree: .set(.union, left.tree, right.tree))
  }

  /// Makes an expression of the members that both collections have.
  public convenience init(forIntersectSet left: NSExpression, with right: NSExpression) {
    self.init(tree: .set(.intersect, left.tree, right.tree))
  }

  /// Makes an expression of the left collection's members that the right one does not have.
  public convenience init(forMinusSet left: NSExpression, with right: NSExpression) {
    self.init(tree: .set(.minus, left.tree, right.tree))
  }

  /// Makes an expression of the members for which a predicate on the variable is true.
  public convenience init(
    forSubquery expression: NSExpression,
    usingIteratorVariable variable: String,
    predicate: NSPredicate
  ) {
    self.init(tree: .subquery(expression.tree, variable, predicate.tree))
  }

  /// Makes an expression that is one of two, selected by a predicate.
  public convenience init(
    forConditional predicate: NSPredicate,
    trueExpression: NSExpression,
    falseExpression: NSExpression
  ) {
    self.init(tree: .conditional(predicate.tree, trueExpression.tree, falseExpression.tree))
  }

  /// Makes an expression of a closure.
  ///
  /// It can be evaluated in memory only.
  public convenience init(
    block: @escaping (Any?, [Any], NSMutableDictionary?) -> Any,
    arguments: [NSExpression]?
  ) {
    self.init(tree: .block(ExpressionBlock(block), (arguments ?? []).map(\.tree)))
  }

  /// The kind of the expression.
  open var expressionType: ExpressionType { type }

  /// Allows the evaluation of an unarchived expression; here it has no effect.
  open func allowEvaluation() {}

  /// The value for an object.
  ///
  /// The context holds values for variables by their names.
  open func expressionValue(with object: Any?, context: NSMutableDictionary?) -> Any? {
    var variables: [String: Any?] = [:]
    for (name, value) in context ?? [:] {
      if let name = name as? String { variables[name] = value }
    }
    do {
      return try value(with: object, variables: variables, clock: Effects.live.clock)
    } catch {
      fatalError("\(error)")
    }
  }

  /// The value for an object, with the caller's clock.
  package func value(
    with object: Any?,
    variables: [String: Any?] = [:],
    clock: any EffectClock
  ) throws -> Any? {
    let evaluator = PredicateEvaluator(variables: variables, clock: clock)
    return try evaluator.boxed(tree, EvaluationSubject(object))
  }

  /// The expression in the format language.
  open override var description: String { PredicateFormatWriter.string(tree) }

  /// Expressions never change, so a copy is the expression itself.
  open override func copy() -> Any { copy(with: nil) }

  /// Expressions never change, so a copy is the expression itself.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other expression is equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? NSExpression, other.type == type else { return false }
    let same = PredicateTree.comparison(ComparisonTree(tree, .equal, .evaluatedObject))
    return same.isEqual(to: .comparison(ComparisonTree(other.tree, .equal, .evaluatedObject)))
  }

  /// Equal for equal expressions.
  open override var hash: Int { description.hashValue }
}
