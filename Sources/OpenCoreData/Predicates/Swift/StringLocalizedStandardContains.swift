import Foundation

extension PredicateExpressions {
  /// Whether a text contains another, case and diacritics aside: `CONTAINS[cdl]`.
  ///
  /// Apple's Foundation has it; on Linux it is missing, and `#Predicate` finds it here.
  public struct StringLocalizedStandardContains<
    Root: PredicateExpression,
    Other: PredicateExpression
  >: PredicateExpression where Root.Output: StringProtocol, Other.Output: StringProtocol {
    /// A truth value.
    public typealias Output = Bool

    /// The text that is searched.
    public let root: Root
    /// The text that is looked for.
    public let other: Other

    /// Creates the expression.
    public init(root: Root, other: Other) {
      self.root = root
      self.other = other
    }

    /// Whether the one text contains the other.
    public func evaluate(_ bindings: PredicateBindings) throws -> Bool {
      let comparison = StringComparison([.caseInsensitive, .diacriticInsensitive])
      return comparison.test(
        .contains,
        String(try root.evaluate(bindings)),
        String(try other.evaluate(bindings))
      )
    }
  }

  /// Called by what `#Predicate` expands to.
  public static func build_localizedStandardContains<Root, Other>(
    _ root: Root,
    _ other: Other
  ) -> StringLocalizedStandardContains<Root, Other> {
    StringLocalizedStandardContains(root: root, other: other)
  }
}

extension PredicateExpressions.StringLocalizedStandardContains: Sendable
where Root: Sendable, Other: Sendable {}

extension PredicateExpressions.StringLocalizedStandardContains: Codable
where Root: Codable, Other: Codable {}

extension PredicateExpressions.StringLocalizedStandardContains: StandardPredicateExpression
where Root: StandardPredicateExpression, Other: StandardPredicateExpression {}

extension PredicateExpressions.StringLocalizedStandardContains: TreeExpression {
  func converted(_ conversion: inout PredicateConversion) throws -> PredicateConversion.Result {
    try conversion.comparison(
      root,
      .contains,
      other,
      options: [.caseInsensitive, .diacriticInsensitive]
    )
  }
}
