import Foundation

extension PredicateExpressions {
  /// Whether a string contains another, ignoring case and diacritics: `CONTAINS[cdl]`.
  ///
  /// Apple's Foundation declares it; on Linux `#Predicate` uses this declaration.
  public struct StringLocalizedStandardContains<
    Root: PredicateExpression,
    Other: PredicateExpression
  >: PredicateExpression where Root.Output: StringProtocol, Other.Output: StringProtocol {
    /// The result type.
    public typealias Output = Bool

    /// The string to search in.
    public let root: Root
    /// The string to search for.
    public let other: Other

    /// Creates the expression.
    public init(root: Root, other: Other) {
      self.root = root
      self.other = other
    }

    /// Whether the first string contains the second.
    public func evaluate(_ bindings: PredicateBindings) throws -> Bool {
      let comparison = StringComparison([.caseInsensitive, .diacriticInsensitive])
      return comparison.test(
        .contains,
        String(try root.evaluate(bindings)),
        String(try other.evaluate(bindings))
      )
    }
  }

  /// Called by the expansion of `#Predicate`.
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
