import WatershedSQLite

/// What one column of a migrated row is filled with.
enum ColumnSource: Hashable {
  /// As it was in a column of the source.
  case column(String)
  /// As it was, or the default where it was nil: an optional attribute that is required now.
  case defaulted(String, SQLiteValue)
  /// A number of another type, or the default where it was nil.
  case number(String, isWhole: Bool, SQLiteValue)
  /// External storage was turned on or off, which changes the form of the value.
  case external(String, isOn: Bool)
  /// A new property's default.
  case value(SQLiteValue)

  /// The expression over a row of the source.
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

  /// The column that is taken over, changed or not.
  var name: String? {
    switch self {
    case .column(let name), .defaulted(let name, _), .external(let name, _),
      .number(let name, _, _):
      name
    case .value: nil
    }
  }

  /// The function that changes the form of a value between inline and external storage.
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
