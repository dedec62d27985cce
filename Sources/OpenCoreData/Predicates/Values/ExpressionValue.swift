import Foundation

/// A value as expressions see it, whatever box it came in.
package indirect enum ExpressionValue: @unchecked Sendable {
  // Unchecked: `object` and `opaque` hold what the user gave; they are compared, never changed.
  case null
  /// Integers of all widths, and Booleans as 0 and 1.
  case integer(Int64)
  /// Never NaN: that is nil, as it is in SQLite.
  case double(Double)
  /// Never NaN either.
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
  /// Anything else. Equal where Foundation says so.
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

  /// The value's members, where it is a collection or stands for one: nil is empty.
  package var members: [ExpressionValue] {
    switch self {
    case .collection(let values): values
    case .null: []
    default: [self]
    }
  }
}
