import CloudKitWebServices
import Foundation
import WatershedSQLite

/// The SQLite implementation of `SQLSession`.
struct SQLiteSession: SQLSession {
  let connection: SQLiteConnection

  var dialect: SQLDialect { .sqlite }

  func query<Result>(
    _ sql: String,
    _ values: [SQLValue],
    _ map: (SQLiteStatement) throws -> Result
  ) throws -> [Result] {
    try SQLValue.check(values)
    return try connection.query(sql, values.map(\.sqlite), map)
  }

  func query<Result>(
    _ sql: String,
    _ values: [SQLValue],
    through isLast: (Result) -> Bool,
    _ map: (SQLiteStatement) throws -> Result
  ) throws -> [Result] {
    try SQLValue.check(values)
    return try connection.query(sql, values.map(\.sqlite), through: isLast, map)
  }

  func run(_ sql: String, each values: [[SQLValue]]) throws {
    guard !values.isEmpty else { return }
    let statement = try connection.statement(sql)
    defer { statement.clearBindings() }
    for values in values {
      try SQLValue.check(values)
      for (offset, value) in values.enumerated() { value.bind(to: statement, at: offset + 1) }
      try statement.run()
    }
  }

  func insert(
    into table: StorageTable,
    _ conflict: StorageTable.Conflict,
    _ rows: [[SQLValue]]
  ) throws {
    guard !rows.isEmpty else { return }
    // In process each execution of a prepared statement costs no more than its row.
    try run(table.insertion(rows: 1, conflict), each: rows)
  }
}

extension SQLiteStatement: SQLRow {}

extension SQLValue {
  fileprivate func bind(to statement: SQLiteStatement, at index: Int) {
    switch self {
    case .null: statement.bindNull(at: index)
    case .integer(let value): statement.bind(value, at: index)
    case .text(let value): statement.bind(value, at: index)
    case .bytes(let value): statement.bind(value, at: index)
    case .texts: statement.bind(sqlite, at: index)
    }
  }

  fileprivate var sqlite: SQLiteValue {
    switch self {
    case .null: .null
    case .integer(let value): .integer(value)
    case .text(let value): .text(value)
    case .bytes(let value): .blob(value)
    case .texts(let values): .text(Self.array(of: values))
    }
  }

  private static func array(of values: [String]) -> String {
    var json = JSONWriter(capacity: 64 * values.count)
    json.beginArray()
    for value in values { json.string(value) }
    json.endArray()
    return String(decoding: json.finished(), as: UTF8.self)
  }
}
