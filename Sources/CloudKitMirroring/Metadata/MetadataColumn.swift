import Foundation
import WatershedSQLite

/// A column of a table whose whole rows are read and written; the cases are in the order of the statements.
///
/// The statements and their values are made of the same list, and rows are read by columns: no column is read or written
/// at another's position.
package protocol MetadataColumn: CaseIterable, RawRepresentable where RawValue == Int {
  var sql: String { get }
}

extension MetadataColumn {
  /// The beginning of a statement that reads whole rows.
  static func selection(from table: String) -> String {
    "SELECT \(allCases.map(\.sql).joined(separator: ", ")) FROM \(table)"
  }

  /// A statement that inserts a row.
  static func insertion(of columns: [Self], into table: String) -> String {
    let places = columns.map { _ in "?" }.joined(separator: ", ")
    return "INSERT INTO \(table) (\(columns.map(\.sql).joined(separator: ", "))) VALUES (\(places))"
  }

  /// A statement that updates the row of an identifier, its last value.
  static func update(of columns: [Self], in table: String) -> String {
    "UPDATE \(table) SET \(columns.map { "\($0.sql) = ?" }.joined(separator: ", ")) WHERE ID = ?"
  }
}

/// The values of a row, by its columns.
struct MetadataReader<Column: MetadataColumn> {
  let row: SQLiteStatement

  func int64(_ column: Column) -> Int64 { row.int64(column.rawValue) }
  func optionalInt64(_ column: Column) -> Int64? { row.optionalInt64(column.rawValue) }
  func text(_ column: Column) -> String { row.text(column.rawValue) }
  func optionalText(_ column: Column) -> String? { row.optionalText(column.rawValue) }
  func optionalBlob(_ column: Column) -> Data? { row.optionalBlob(column.rawValue) }
}
