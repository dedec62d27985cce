/// What a SQL expression's values are, which says what they compare with.
package enum SQLValueKind: Sendable, Hashable {
  case number
  case date
  case text
  case data
  /// The key of a row of the table.
  case object(table: String)
  /// NULL, and nothing else.
  case null
  /// Values that cannot be compared in SQL; only whether they are nil can be asked.
  case opaque
}

/// A scalar in SQL.
package struct SQLTerm {
  package var fragment: SQLFragment
  package var kind: SQLValueKind
  /// The value, where it is known before the statement runs.
  var constant: ExpressionValue?
  /// Whether SQLite may keep whole values of it as integers, which divide differently.
  var isNumeric = false
  /// Whether the values are decimal, which SQLite's own aggregates would round.
  var isDecimal = false

  static let null = SQLTerm(fragment: SQLFragment("NULL"), kind: .null, constant: .null)

  /// The term where arithmetic needs it: a decimal or a date counts as a double.
  var operand: SQLFragment {
    if case .decimal(let value)? = constant { return SQLFragment("?", [.double(value.asDouble)]) }
    if case .date(let seconds)? = constant { return SQLFragment("?", [.double(seconds)]) }
    return isNumeric ? "CAST(" + fragment + " AS REAL)" : fragment
  }

  /// The term where it is compared with other numbers or put in order.
  ///
  /// A decimal that no double can hold is text in its column, and would be above all numbers.
  var number: SQLFragment {
    if constant != nil { return operand }
    return isDecimal ? "(" + fragment + " + 0)" : fragment
  }
}

extension ExpressionValue {
  /// What the value compares with.
  ///
  /// A collection compares with nothing.
  var sqlKind: SQLValueKind {
    switch self {
    case .null: .null
    case .integer, .double, .decimal: .number
    case .date: .date
    case .string, .url: .text
    case .uuid, .data: .data
    case .object, .collection, .opaque: .opaque
    }
  }
}

extension SQLColumnKind {
  var valueKind: SQLValueKind {
    switch self {
    case .integer, .double, .decimal: .number
    case .date: .date
    case .string, .url: .text
    case .uuid, .data: .data
    case .opaque: .opaque
    }
  }
}
