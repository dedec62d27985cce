import Foundation

/// A row of a table, described by one list of its columns.
///
/// The table, the statements that read whole rows and the rows that a commit writes are made of this
/// list: a column without a definition and a written value does not compile, and no column is read
/// at another's position. Records have ``RecordColumn`` instead, because feeds read their rows in
/// blocks of memory.
protocol TableRow {
  /// In the table's order.
  associatedtype Column: CaseIterable, RawRepresentable<Int>

  static var table: StorageTable { get }
  static func definition(of column: Column) -> StorageTable.Column
  /// The beginning of a statement that reads whole rows; ``selection`` makes it.
  static var select: String { get }

  init(_ row: ColumnReader<some SQLRow, Column>) throws
  func value(of column: Column) throws -> SQLValue
}

extension TableRow {
  static var columns: [StorageTable.Column] { Column.allCases.map { definition(of: $0) } }

  static var selection: String {
    "SELECT \(columns.map(\.name).joined(separator: ", ")) FROM \(table.name)"
  }
}

/// The values of a row, by the names of its columns.
struct ColumnReader<Row: SQLRow, Column: RawRepresentable<Int>> {
  let row: Row

  func int64(_ column: Column) -> Int64 { row.int64(column.rawValue) }
  func text(_ column: Column) -> String { row.text(column.rawValue) }
  func optionalText(_ column: Column) -> String? { row.optionalText(column.rawValue) }
  func blob(_ column: Column) -> Data { row.blob(column.rawValue) }
  func optionalBlob(_ column: Column) -> Data? { row.optionalBlob(column.rawValue) }
}

extension SQLSession {
  /// The whole rows of a table; `rest` is the statement's end, with conditions, order and limit.
  func rows<Found: TableRow>(
    of type: Found.Type = Found.self,
    _ rest: String,
    _ values: [SQLValue]
  ) throws -> [Found] {
    try query("\(Found.select) \(rest)", values) { try Found(ColumnReader(row: $0)) }
  }

  /// Inserts whole rows; no two of them may have the same key.
  func insert<Made: TableRow>(_ rows: [Made], _ conflict: StorageTable.Conflict) throws {
    guard !rows.isEmpty else { return }
    try insert(
      into: Made.table,
      conflict,
      try rows.map { row in try Made.Column.allCases.map { try row.value(of: $0) } }
    )
  }
}
