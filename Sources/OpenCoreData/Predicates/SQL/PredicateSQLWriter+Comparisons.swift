import Foundation

extension PredicateSQLWriter {
  /// A left operand: a tree, or a member of a collection that was already written.
  enum Operand {
    case tree(ExpressionTree)
    case term(SQLTerm)
  }

  func term(_ operand: Operand) throws -> SQLTerm {
    switch operand {
    case .tree(let tree): try term(tree)
    case .term(let term): term
    }
  }

  /// A comparison without a modifier.
  ///
  /// It is true or false, never NULL.
  func write(
    _ left: Operand,
    _ kind: ComparisonKind,
    _ right: ExpressionTree,
    _ options: StringComparisonOptions
  ) throws -> SQLFragment {
    switch kind {
    case .equal, .notEqual, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
      return try relation(left, kind, right, options)
    case .between: return try range(try term(left), right, options)
    case .in: return try membership(left, in: right, options)
    case .contains, .tokenMatches:
      if case .tree(let collection) = left, try isCollection(collection) {
        return try membership(.tree(right), in: collection, options)
      }
      return try test(kind, try term(left), try term(right), options)
    case .matches, .like, .beginsWith, .endsWith:
      return try test(kind, try term(left), try term(right), options)
    }
  }

  private func relation(
    _ left: Operand,
    _ kind: ComparisonKind,
    _ right: ExpressionTree,
    _ options: StringComparisonOptions
  ) throws -> SQLFragment {
    var (first, second) = (try term(left), try term(right))
    // A constant text that contains a number is compared with a number as that number.
    if first.kind == .number, let number = right.numberInText {
      second = try term(.constant(ExpressionConstant(value: number)))
    } else if second.kind == .number, case .tree(let tree) = left, let number = tree.numberInText {
      first = try term(.constant(ExpressionConstant(value: number)))
    } else if first.kind == .text, let text = right.numbersAsText {
      // SQLite compares a text column with a number as text; so does evaluation in memory.
      second = try term(.constant(ExpressionConstant(value: text)))
    } else if second.kind == .text, case .tree(let tree) = left, let text = tree.numbersAsText {
      first = try term(.constant(ExpressionConstant(value: text)))
    }
    switch kind {
    case .equal: return try equality(first, second, options)
    case .notEqual: return try inequality(first, second, options)
    default: return try ordering(first, kind, second, options)
    }
  }

  // MARK: Equality

  func equality(
    _ left: SQLTerm,
    _ right: SQLTerm,
    _ options: StringComparisonOptions
  ) throws -> SQLFragment {
    if let first = left.constant, let second = right.constant {
      return Self.constant(first.isEqual(to: second, options: options))
    }
    if left.constant != nil { return try equality(right, left, options) }
    if right.kind == .null { return left.fragment + " IS NULL" }
    guard let pair = try comparable(left, right, options) else {
      // Values of different types are equal only if both are nil.
      if right.constant != nil { return Self.never }
      return "(" + left.fragment + " IS NULL AND " + right.fragment + " IS NULL)"
    }
    return pair.left + (right.constant == nil ? " IS " : " = ") + pair.right
  }

  func inequality(
    _ left: SQLTerm,
    _ right: SQLTerm,
    _ options: StringComparisonOptions
  ) throws -> SQLFragment {
    if let first = left.constant, let second = right.constant {
      return Self.constant(!first.isEqual(to: second, options: options))
    }
    if left.constant != nil { return try inequality(right, left, options) }
    if right.kind == .null { return left.fragment + " IS NOT NULL" }
    guard let pair = try comparable(left, right, options) else {
      if right.constant != nil { return Self.always }
      return "(" + left.fragment + " IS NOT NULL OR " + right.fragment + " IS NOT NULL)"
    }
    return pair.left + " IS NOT " + pair.right
  }

  /// Both operands as they are compared, with strings folded; nil if their types can't be compared.
  ///
  /// The left operand is not a constant.
  private func comparable(
    _ left: SQLTerm,
    _ right: SQLTerm,
    _ options: StringComparisonOptions,
    forOrder: Bool = false
  ) throws -> (left: SQLFragment, right: SQLFragment)? {
    if left.kind == .opaque {
      throw PredicateNotTranslatable(
        reason: "unimplemented SQL generation for a comparison with \(left.fragment.sql): "
          + "its values can be read in memory only"
      )
    }
    if case .object(let table) = left.kind {
      guard let key = try objectKey(right, in: table) else { return nil }
      return (left.fragment, key)
    }
    guard left.kind == right.kind else { return nil }
    if left.isDecimal || right.isDecimal {
      let isExact = !forOrder && Self.isExact(left) && Self.isExact(right)
      return isExact ? (left.fragment, right.fragment) : (left.number, right.number)
    }
    let comparison = StringComparison(options)
    guard left.kind == .text, !comparison.isLiteral || forOrder && isLocaleSensitive(options)
    else { return (left.fragment, right.fragment) }
    let function = forOrder ? PredicateSQLFunctions.orderKey : PredicateSQLFunctions.fold
    func folded(_ term: SQLTerm) -> SQLFragment {
      if let text = term.constant?.text {
        let value = forOrder ? comparison.orderKey(text) : comparison.folded(text)
        return SQLFragment("?", [.string(value)])
      }
      return "\(function)('\(options.letters)', " + term.fragment + ")"
    }
    return (folded(left), folded(right))
  }

  /// Whether equal values have one representation: a long decimal may also be stored as a double.
  private static func isExact(_ term: SQLTerm) -> Bool {
    switch term.constant {
    case .decimal?, .integer?: true
    case nil: term.isDecimal
    default: false
    }
  }

  private func isLocaleSensitive(_ options: StringComparisonOptions) -> Bool {
    options.contains(.localeSensitive) && !options.contains(.normalized)
  }

  /// The primary key of an operand in the table; nil if it is not a row of the table.
  private func objectKey(_ term: SQLTerm, in table: String) throws -> SQLFragment? {
    switch (term.constant, term.kind) {
    case (.object(let identifier, _)?, _):
      guard let row = naming.sqlRow(of: identifier), row.table == table else { return nil }
      return SQLFragment("?", [.integer(row.key)])
    case (nil, .object(table)): return term.fragment
    default: return nil
    }
  }

  // MARK: Order

  func ordering(
    _ left: SQLTerm,
    _ kind: ComparisonKind,
    _ right: SQLTerm,
    _ options: StringComparisonOptions
  ) throws -> SQLFragment {
    if let first = left.constant, let second = right.constant {
      return Self.constant(first.holds(kind, second, options: options))
    }
    if left.constant != nil {
      return try ordering(right, kind.mirrored, left, options)
    }
    // No value is before or after nil, and objects have no order.
    if case .object = left.kind { return Self.never }
    guard right.kind != .null,
      let pair = try comparable(left, right, options, forOrder: true)
    else { return Self.never }
    return pair.left + " \(kind.rawValue) " + pair.right
  }

  private func range(
    _ value: SQLTerm,
    _ bounds: ExpressionTree,
    _ options: StringComparisonOptions
  ) throws -> SQLFragment {
    guard let members = try members(of: bounds), members.count == 2 else {
      if try constantValue(of: bounds) != nil { return Self.never }
      throw PredicateNotTranslatable.expression(bounds, "BETWEEN takes two bounds")
    }
    return Self.joined(
      [
        try ordering(value, .greaterThanOrEqual, members[0], options),
        try ordering(value, .lessThanOrEqual, members[1], options),
      ],
      isConjunction: true
    )
  }

  // MARK: String operators

  func test(
    _ kind: ComparisonKind,
    _ text: SQLTerm,
    _ pattern: SQLTerm,
    _ options: StringComparisonOptions
  ) throws -> SQLFragment {
    if let first = text.constant, let second = pattern.constant {
      return Self.constant(first.holds(kind, second, options: options))
    }
    guard text.kind == .text, pattern.kind == .text else { return Self.never }
    let isPlain = StringComparison(options).isLiteral && !options.contains(.wholeWord)
    if isPlain, kind == .contains {
      return "instr(" + text.fragment + ", " + pattern.fragment + ") > 0"
    }
    if isPlain, kind == .beginsWith, let prefix = pattern.constant?.text {
      return Self.prefixRange(text.fragment, prefix)
    }
    if kind == .matches, let expression = pattern.constant?.text,
      RegularExpressionCache.shared.expression(expression, options) == nil
    {
      throw PredicateNotTranslatable(
        reason: "Can't do regex matching, reason: Can't open pattern \(expression)"
      )
    }
    return "\(PredicateSQLFunctions.test)('\(kind.rawValue)', '\(options.letters)', "
      + text.fragment + ", " + pattern.fragment + ")"
  }

  /// A prefix as a range, so that an index on the column can be used.
  static func prefixRange(_ text: SQLFragment, _ prefix: String) -> SQLFragment {
    if prefix.isEmpty { return text + " IS NOT NULL" }
    let lower = text + SQLFragment(" >= ?", [.string(prefix)])
    guard let end = successor(ofPrefix: prefix) else { return lower }
    return "(" + lower + " AND " + text + SQLFragment(" < ?)", [.string(end)])
  }

  /// The first string after all strings with the prefix; nil if there is none.
  static func successor(ofPrefix prefix: String) -> String? {
    var scalars = Array(prefix.unicodeScalars)
    while let last = scalars.popLast() {
      // The code points of surrogates are not characters.
      let next = last.value == 0xD7FF ? 0xE000 : last.value + 1
      guard let scalar = Unicode.Scalar(next) else { continue }
      scalars.append(scalar)
      return String(String.UnicodeScalarView(scalars))
    }
    return nil
  }
}

extension ComparisonKind {
  /// The operator with its operands exchanged.
  fileprivate var mirrored: ComparisonKind {
    switch self {
    case .lessThan: .greaterThan
    case .lessThanOrEqual: .greaterThanOrEqual
    case .greaterThan: .lessThan
    case .greaterThanOrEqual: .lessThanOrEqual
    default: self
    }
  }
}
