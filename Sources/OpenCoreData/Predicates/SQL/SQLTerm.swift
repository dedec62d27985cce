/// The type of a SQL expression's values, which decides what they can be compared with.
package enum SQLValueKind: Sendable, Hashable {
  case number
  case date
  case text
  case data
  /// The key of a row of the table.
  case object(table: String)
  /// NULL, and nothing else.
  case null
  /// Values that can't be compared in SQL; only whether they are nil can be tested.
  case opaque
}

/// A scalar in SQL.
package struct SQLTerm {
  package var fragment: SQLFragment
  package var kind: SQLValueKind
  /// The value, if it is known before the statement runs.
  var constant: ExpressionValue?
  /// Whether SQLite may store its whole values as integers, whose division differs.
  var isNumeric = false
  /// Whether the values are decimal, which SQLite's own aggregates would round.
  var isDecimal = false

  static let null = SQLTerm(fragment: SQLFragment("NULL"), kind: .null, constant: .null)

  /// The term in arithmetic: a decimal or a date is used as a double.
  var operand: SQLFragment {
    if case .decimal(let value)? = constant { return SQLFragment("?", [.double(value.asDouble)]) }
    if case .date(let seconds)? = constant { return SQLFragment("?", [.double(seconds)]) }
    return isNumeric ? "CAST(" + fragment + " AS REAL)" : fragment
  }

  /// The term in comparisons with other numbers, and in orders.
  ///
  /// A decimal that no double can represent is stored as text, which would sort after all numbers.
  var number: SQLFragment {
    if constant != nil { return operand }
    return isDecimal ? "(" + fragment + " + 0)" : fragment
  }
}

extension ExpressionValue {
  /// The type that the value can be compared with.
  ///
  /// A collection can't be compared.
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
