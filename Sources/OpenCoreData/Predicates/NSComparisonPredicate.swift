import Foundation

/// A predicate that compares two expressions.
///
/// ```swift
/// let predicate = NSComparisonPredicate(
///   leftExpression: NSExpression(forKeyPath: "title"),
///   rightExpression: NSExpression(forConstantValue: "swift"),
///   modifier: .direct,
///   type: .beginsWith,
///   options: [.caseInsensitive, .diacriticInsensitive]
/// )
/// print(predicate.predicateFormat)  // title BEGINSWITH[cd] "swift"
/// ```
open class NSComparisonPredicate: NSPredicate, TreeHolding {
  /// How strings are compared.
  public struct Options: OptionSet, Sendable {
    /// The bits, as Apple numbers them.
    public let rawValue: UInt

    /// Makes options of bits.
    public init(rawValue: UInt) {
      self.rawValue = rawValue
    }

    /// Upper and lower case are the same: `[c]`.
    public static let caseInsensitive = Options(rawValue: 1)
    /// Letters with and without marks are the same: `[d]`.
    public static let diacriticInsensitive = Options(rawValue: 2)
    /// The strings have been folded already: `[n]`.
    public static let normalized = Options(rawValue: 4)
  }

  /// Which members of a collection on the left are compared.
  public enum Modifier: UInt, Sendable {
    /// The left side is compared as it is.
    case direct = 0
    /// All members must match.
    case all = 1
    /// At least one member must match.
    case any = 2
  }

  /// The operator between the two sides.
  public enum Operator: UInt, Sendable {
    /// `<`
    case lessThan = 0
    /// `<=`
    case lessThanOrEqualTo = 1
    /// `>`
    case greaterThan = 2
    /// `>=`
    case greaterThanOrEqualTo = 3
    /// `==`
    case equalTo = 4
    /// `!=`
    case notEqualTo = 5
    /// `MATCHES`
    case matches = 6
    /// `LIKE`
    case like = 7
    /// `BEGINSWITH`
    case beginsWith = 8
    /// `ENDSWITH`
    case endsWith = 9
    /// `IN`
    case `in` = 10
    /// `CONTAINS`
    case contains = 99
    /// `BETWEEN`
    case between = 100
  }

  let comparison: ComparisonTree

  /// Makes a comparison of two expressions.
  public init(
    leftExpression lhs: NSExpression,
    rightExpression rhs: NSExpression,
    modifier: Modifier,
    type: Operator,
    options: Options = []
  ) {
    comparison = ComparisonTree(
      lhs.tree,
      type.kind,
      rhs.tree,
      modifier: modifier.comparisonModifier,
      options: StringComparisonOptions(rawValue: options.rawValue)
    )
    super.init(value: true)
    CompoundPredicateMethods.install()
  }

  init(_ comparison: ComparisonTree) {
    self.comparison = comparison
    super.init(value: true)
    CompoundPredicateMethods.install()
  }

  var heldTree: PredicateTree { .comparison(comparison) }

  /// The expression on the left.
  open var leftExpression: NSExpression { NSExpression(tree: comparison.left) }

  /// The expression on the right.
  open var rightExpression: NSExpression { NSExpression(tree: comparison.right) }

  /// Which members of a collection on the left are compared.
  open var comparisonPredicateModifier: Modifier { Modifier(comparison.modifier) }

  /// The operator between the two sides.
  open var predicateOperatorType: Operator { Operator(comparison.comparison) }

  /// How strings are compared.
  open var options: Options { Options(rawValue: comparison.options.rawValue) }

  /// The predicate in the format language; parsing it gives an equal predicate.
  open override var predicateFormat: String { PredicateFormatWriter.string(heldTree) }

  /// The predicate in the format language.
  open override var description: String { predicateFormat }

  /// Predicates never change, so a copy is the predicate itself.
  open override func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the comparison holds for the object.
  open override func evaluate(with object: Any?) -> Bool { heldTree.holds(for: object, nil) }

  /// Whether the comparison holds for the object, with values for its variables.
  open override func evaluate(
    with object: Any?,
    substitutionVariables bindings: [String: Any]?
  ) -> Bool {
    heldTree.holds(for: object, bindings)
  }

  /// Whether the other predicate is equal.
  open override func isEqual(_ object: Any?) -> Bool {
    (object as? NSPredicate)?.tree.isEqual(to: heldTree) ?? false
  }

  /// Equal for equal predicates.
  open override var hash: Int { predicateFormat.hashValue }
}

extension NSComparisonPredicate.Modifier {
  fileprivate init(_ modifier: ComparisonModifier) {
    switch modifier {
    case .direct: self = .direct
    case .all: self = .all
    case .any: self = .any
    }
  }

  fileprivate var comparisonModifier: ComparisonModifier {
    switch self {
    case .direct: .direct
    case .all: .all
    case .any: .any
    }
  }
}

extension NSComparisonPredicate.Operator {
  fileprivate init(_ kind: ComparisonKind) {
    switch kind {
    case .lessThan: self = .lessThan
    case .lessThanOrEqual: self = .lessThanOrEqualTo
    case .greaterThan: self = .greaterThan
    case .greaterThanOrEqual: self = .greaterThanOrEqualTo
    case .equal: self = .equalTo
    case .notEqual: self = .notEqualTo
    case .matches: self = .matches
    case .like: self = .like
    case .beginsWith: self = .beginsWith
    case .endsWith: self = .endsWith
    case .in: self = .in
    // Apple has no public number for CloudKit's operator.
    case .contains, .tokenMatches: self = .contains
    case .between: self = .between
    }
  }

  fileprivate var kind: ComparisonKind {
    switch self {
    case .lessThan: .lessThan
    case .lessThanOrEqualTo: .lessThanOrEqual
    case .greaterThan: .greaterThan
    case .greaterThanOrEqualTo: .greaterThanOrEqual
    case .equalTo: .equal
    case .notEqualTo: .notEqual
    case .matches: .matches
    case .like: .like
    case .beginsWith: .beginsWith
    case .endsWith: .endsWith
    case .in: .in
    case .contains: .contains
    case .between: .between
    }
  }
}
