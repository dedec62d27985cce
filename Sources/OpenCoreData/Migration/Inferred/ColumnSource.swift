import WatershedSQLite

/// The source of the values in one column of a migrated table.
enum ColumnSource: Hashable {
  /// Unchanged from a column of the source.
  case column(String)
  /// Unchanged, or the default where it was nil: an optional attribute that is required now.
  case defaulted(String, SQLiteValue)
  /// Converted to another type of number, or the default where it was nil.
  case number(String, isWhole: Bool, SQLiteValue)
  /// Converted because external storage was turned on or off.
  case external(String, isOn: Bool)
  /// A new property's default.
  case value(SQLiteValue)

  /// The SQL expression over a row of the source.
  var sql: String {
    switch self {
    case .column(let name): name
    case .defaulted(let name, let value): "IFNULL(\(name), \(Self.literal(value)))"
    case .number(let name, let isWhole, let value):
      "IFNULL(CAST(\(name) AS \(isWhole ? "INTEGER" : "REAL")), \(Self.literal(value)))"
    case .external(let name, let isOn): "\(Self.externalFunction)(\(name), \(isOn ? 1 : 0))"
    case .value(let value): Self.literal(value)
    }
  }

  /// The source's column, converted or not.
  var name: String? {
    switch self {
    case .column(let name), .defaulted(let name, _), .external(let name, _),
      .number(let name, _, _):
      name
    case .value: nil
    }
  }

  /// The SQL function that converts a value between inline and external storage.
  static let externalFunction = "WatershedExternalForm"

  static func literal(_ value: SQLiteValue) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let value): "\(value)"
    case .real(let value): "\(value)"
    case .text(let text): "'" + text.replacing("'", with: "''") + "'"
    case .blob(let data): "X'" + data.map { Self.hexadecimal($0) }.joined() + "'"
    }
  }

  private static func hexadecimal(_ byte: UInt8) -> String {
    let text = String(byte, radix: 16, uppercase: true)
    return text.count == 1 ? "0" + text : text
  }
}
