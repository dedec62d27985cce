import Foundation

/// The value of an expression, independent of the type it was given as.
package indirect enum ExpressionValue: @unchecked Sendable {
  // Unchecked: `object` and `opaque` contain the app's values; they are compared, never changed.
  case null
  /// Integers of all sizes, and Booleans as 0 and 1.
  case integer(Int64)
  /// Never NaN, which is nil, as in SQLite.
  case double(Double)
  /// Never NaN.
  case decimal(Decimal)
  /// Seconds since 2001-01-01 00:00 UTC.
  case date(Double)
  case string(String)
  case url(URL)
  case uuid(UUID)
  case data(Data)
  /// A stored object or its identifier.
  case object(AnyHashable, Any)
  case collection([ExpressionValue])
  /// Any other value; equality is Foundation's.
  case opaque(Any)

  package var isNull: Bool {
    if case .null = self { return true }
    return false
  }

  package static func number(_ value: Double) -> ExpressionValue {
    value.isNaN ? .null : .double(value)
  }

  package static func exact(_ value: Decimal) -> ExpressionValue {
    value.isNaN ? .null : .decimal(value)
  }

  package static func bool(_ value: Bool) -> ExpressionValue {
    .integer(value ? 1 : 0)
  }

  /// The members of a collection; nil has none, and another value is its only member.
  package var members: [ExpressionValue] {
    switch self {
    case .collection(let values): values
    case .null: []
    default: [self]
    }
  }
}
