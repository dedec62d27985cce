import Foundation
import WatershedSQLite

/// A collection operator over the decimal values of a group's rows.
///
/// SQLite's own aggregates use doubles, which can't represent a tenth exactly.
final class DecimalFold: SQLiteAggregate {
  private var operation: CollectionOperator?
  private var count = 0
  private var sum: Decimal = 0
  private var least: Decimal?
  private var greatest: Decimal?

  /// The arguments are the operator and a column's value.
  func take(_ arguments: [SQLiteValue]) {
    guard arguments.count == 2, case .text(let name) = arguments[0] else { return }
    operation = CollectionOperator(rawValue: name)
    guard case .decimal(let boxed) = RowCoding.decimal(arguments[1]), !boxed.value.isNaN else {
      return
    }
    let value = boxed.value
    count += 1
    sum += value
    least = least.map { min($0, value) } ?? value
    greatest = greatest.map { max($0, value) } ?? value
  }

  var result: SQLiteValue {
    let value: Decimal? =
      switch operation {
      case .average?: count == 0 ? nil : sum / Decimal(count)
      case .minimum?: least
      case .maximum?: greatest
      case .sum?: sum
      default: nil
      }
    guard let value, !value.isNaN else { return .null }
    return RowCoding.sqlite(.decimal(RowDecimal(value)))
  }
}
