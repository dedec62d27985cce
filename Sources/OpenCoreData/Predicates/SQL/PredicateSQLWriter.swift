import Foundation

/// Translates predicates, expressions and sort descriptors to SQL for one SELECT.
///
/// The rows are those of the entity's table under the alias. The translation may need joins: read
/// `joins` after everything else. The semantics are those of `PredicateTree`: a condition is 1, or
/// else 0 or NULL, and conditions under a NOT are written so that they are never NULL.
package struct PredicateSQLWriter {
  let naming: any SQLNaming
  let root: SQLNode
  let now: Date
  /// Whether collection functions of a plain attribute aggregate the rows of the SELECT, as in a
  /// dictionary fetch.
  let aggregatesRows: Bool
  /// Additional meanings of keys and `$variables`: the named columns of a dictionary fetch.
  package var named: [String: SQLTerm] = [:]
  var variables: [String: SQLNode] = [:]

  package init(
    naming: any SQLNaming,
    entity: String,
    alias: String = "t0",
    now: Date,
    aggregatesRows: Bool = false
  ) {
    self.naming = naming
    self.now = now
    self.aggregatesRows = aggregatesRows
    root = SQLNode(scope: SQLScope(aliases: SQLScope.Aliases()), alias: alias, entity: entity)
  }

  /// The joins that the translation so far needs, to follow the table in FROM.
  ///
  /// Empty, or with a leading space.
  package var joins: String { root.scope.joins.joined() }

  /// The predicate as a condition for WHERE or HAVING.
  package func condition(_ predicate: NSPredicate) throws -> SQLFragment {
    try condition(predicate.tree)
  }

  /// The tree as a condition for WHERE or HAVING.
  package func condition(_ tree: PredicateTree) throws -> SQLFragment {
    try write(tree, negated: false)
  }

  /// The expression as a SQL expression, with what its values are.
  package func value(_ expression: NSExpression) throws -> SQLTerm {
    try term(expression.tree)
  }

  // MARK: Conditions

  static let always = SQLFragment("1")
  static let never = SQLFragment("0")

  static func constant(_ value: Bool) -> SQLFragment { value ? always : never }

  /// Negation is applied to the comparisons: above them NULL counts as false, so only they have to
  /// distinguish it.
  func write(_ tree: PredicateTree, negated: Bool) throws -> SQLFragment {
    switch tree {
    case .constant(let value):
      return Self.constant(value != negated)
    case .and(let parts):
      return try write(parts, negated: negated, isConjunction: !negated)
    case .or(let parts):
      return try write(parts, negated: negated, isConjunction: negated)
    case .not(let part):
      return try write(part, negated: !negated)
    case .comparison(let comparison):
      let written = try write(comparison)
      if !negated { return written }
      if written == Self.always { return Self.never }
      if written == Self.never { return Self.always }
      return "(" + written + ") IS NOT TRUE"
    case .opaque:
      throw PredicateNotTranslatable(
        reason: "Unsupported predicate \(PredicateFormatWriter.string(tree))"
      )
    }
  }

  private func write(
    _ parts: [PredicateTree],
    negated: Bool,
    isConjunction: Bool
  ) throws -> SQLFragment {
    Self.joined(
      try parts.map { try write($0, negated: negated) },
      isConjunction: isConjunction
    )
  }

  /// Joins conditions in a balanced tree: SQLite limits the depth of an expression, and a thousand
  /// alternatives in a chain would have a depth of a thousand.
  static func joined(_ parts: [SQLFragment], isConjunction: Bool) -> SQLFragment {
    if parts.isEmpty { return constant(isConjunction) }
    if parts.count == 1 { return parts[0] }
    if parts.count <= 64 {
      return "(" + parts.joined(separator: isConjunction ? " AND " : " OR ") + ")"
    }
    let middle = parts.count / 2
    return joined(
      [
        joined(Array(parts[..<middle]), isConjunction: isConjunction),
        joined(Array(parts[middle...]), isConjunction: isConjunction),
      ],
      isConjunction: isConjunction
    )
  }

  /// A comparison with its modifier.
  private func write(_ comparison: ComparisonTree) throws -> SQLFragment {
    if comparison.modifier == .direct {
      if let test = entityTest(comparison) { return test }
      return try write(
        .tree(comparison.left),
        comparison.comparison,
        comparison.right,
        comparison.options
      )
    }
    let isAny = comparison.modifier == .any
    if let elements = try elements(of: comparison.left) {
      let matches = try write(
        .term(elements.term),
        comparison.comparison,
        comparison.right,
        comparison.options
      )
      if isAny { return elements.exists(matches) }
      return "NOT " + elements.exists("(" + matches + ") IS NOT TRUE")
    }
    if let members = try members(of: comparison.left) {
      let parts = try members.map {
        try write(.term($0), comparison.comparison, comparison.right, comparison.options)
      }
      return Self.joined(parts, isConjunction: !isAny)
    }
    // A single value is a collection of one, and nil an empty collection.
    let left = try term(comparison.left)
    let matches = try write(
      .term(left),
      comparison.comparison,
      comparison.right,
      comparison.options
    )
    return isAny
      ? "(" + left.fragment + " IS NOT NULL AND " + matches + ")"
      : "(" + left.fragment + " IS NULL OR " + matches + ")"
  }
}
