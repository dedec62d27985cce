import Foundation

extension PredicateSQLWriter {
  /// Longer lists go to SQLite as one JSON value: a statement's parameters are bounded, and its
  /// text stays the same for all long lists.
  private static let boundListLimit = 500

  /// `value IN collection`, and `collection CONTAINS value`.
  func membership(
    _ value: Operand,
    in collection: ExpressionTree,
    _ options: StringComparisonOptions
  ) throws -> SQLFragment {
    if let elements = try elements(of: collection) {
      return elements.exists(try equality(elements.term, try term(value), options))
    }
    if let constant = try constantValue(of: collection) {
      let left = try term(value)
      guard case .collection(let members) = constant else {
        let whole = SQLTerm(
          fragment: try bound(constant, in: collection),
          kind: constant.sqlKind,
          constant: constant
        )
        return try test(.contains, whole, left, options)
      }
      return try membership(left, among: members, options)
    }
    if let members = try members(of: collection) {
      let left = try term(value)
      return Self.joined(
        try members.map { try equality(left, $0, options) },
        isConjunction: false
      )
    }
    // One string is in another that contains it.
    return try test(.contains, try term(collection), try term(value), options)
  }

  private func membership(
    _ left: SQLTerm,
    among members: [ExpressionValue],
    _ options: StringComparisonOptions
  ) throws -> SQLFragment {
    if let constant = left.constant {
      return Self.constant(members.contains { $0.isEqual(to: constant, options: options) })
    }
    if left.kind == .opaque, members.contains(where: { !$0.isNull }) {
      throw PredicateNotTranslatable(
        reason: "unimplemented SQL generation for IN with \(left.fragment.sql)"
      )
    }
    var tests: [SQLFragment] = []
    if members.contains(where: \.isNull) { tests.append(left.fragment + " IS NULL") }
    let comparison = StringComparison(options)
    var side = left.fragment
    if left.kind == .text, !comparison.isLiteral {
      side = "\(PredicateSQLFunctions.fold)('\(options.letters)', " + side + ")"
    }
    let values = members.compactMap { rowValue($0, comparableWith: left.kind, comparison) }
    if let list = Self.list(values) { tests.append(side + " IN " + list) }
    return Self.joined(tests, isConjunction: false)
  }

  /// The member as it is bound; nil for one that equals nothing of the kind.
  private func rowValue(
    _ member: ExpressionValue,
    comparableWith kind: SQLValueKind,
    _ comparison: StringComparison
  ) -> RowValue? {
    if case .object(let table) = kind {
      guard case .object(let identifier, _) = member, let row = naming.sqlRow(of: identifier),
        row.table == table
      else { return nil }
      return .integer(row.key)
    }
    guard member.sqlKind == kind, kind != .null else { return nil }
    if let text = member.text { return .string(comparison.folded(text)) }
    return member.rowValue
  }

  private static func list(_ values: [RowValue]) -> SQLFragment? {
    if values.isEmpty { return nil }
    if values.count > boundListLimit, let json = json(values) {
      return SQLFragment("(SELECT value FROM json_each(?))", [.string(json)])
    }
    let marks = Array(repeating: "?", count: values.count).joined(separator: ", ")
    return SQLFragment("(\(marks))", values)
  }

  /// Whole numbers and texts survive JSON unchanged; other kinds stay parameters.
  private static func json(_ values: [RowValue]) -> String? {
    var integers: [Int64] = []
    var texts: [String] = []
    for value in values {
      switch value {
      case .integer(let number): integers.append(number)
      // SQLite ends a JSON string at an escaped zero.
      case .string(let text) where !text.utf8.contains(0): texts.append(text)
      default: return nil
      }
    }
    let encoder = JSONEncoder()
    let encoded =
      texts.isEmpty
      ? try? encoder.encode(integers) : integers.isEmpty ? try? encoder.encode(texts) : nil
    return encoded.map { String(decoding: $0, as: UTF8.self) }
  }
}
