import Foundation

/// A value of a row.
///
/// Integer 16/32/64 and Boolean are `integer`; Float and Double are `double`. A transformable or
/// composite attribute is passed to and from stores as `data`, its transformer's output. To-one
/// relationships are `reference`.
package enum RowValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case double(Double)
  /// Seconds since 2001-01-01 00:00 UTC, as `Date` counts.
  case date(Double)
  case decimal(RowDecimal)
  case string(String)
  case data(Data)
  case uuid(UUID)
  case url(URL)
  case reference(RowReference)

  package var isNull: Bool {
    if case .null = self { return true }
    return false
  }
}

/// A decimal number, boxed because it is larger than every other row value.
package final class RowDecimal: Sendable, Hashable {
  package let value: Decimal

  package init(_ value: Decimal) {
    self.value = value
  }

  package static func == (left: RowDecimal, right: RowDecimal) -> Bool {
    left.value == right.value
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(value)
  }
}
