import Foundation
import Synchronization
import WatershedPostgreSQL

/// The PostgreSQL implementation of `SQLSession`.
struct PostgreSQLSession: SQLSession {
  let connection: PostgreSQLConnection
  /// The prefetched results.
  var prefetched: [SQLStatement: PostgreSQLResult] = [:]

  var dialect: SQLDialect { .postgreSQL }

  func query<Result>(
    _ sql: String,
    _ values: [SQLValue],
    _ map: (PostgreSQLRow) throws -> Result
  ) throws -> [Result] {
    if !prefetched.isEmpty, let known = prefetched[SQLStatement(sql: sql, values: values)] {
      return try known.map(map)
    }
    try SQLValue.check(values)
    return try connection.query(sql, values.map(\.postgreSQL)).map(map)
  }

  /// Queues the statement; it is sent with the next query or the commit.
  func run(_ sql: String, each values: [[SQLValue]]) throws {
    for values in values {
      try SQLValue.check(values)
      try connection.queue(sql, values.map(\.postgreSQL))
    }
  }

  /// Inserts in statements of at most `largestInsertion` rows, halved for the remainder, so that
  /// few different texts occur and stay prepared.
  func insert(
    into table: StorageTable,
    _ conflict: StorageTable.Conflict,
    _ rows: [[SQLValue]]
  ) throws {
    for row in rows { try SQLValue.check(row) }
    var rest = rows[...]
    var size = Self.largestInsertion
    while !rest.isEmpty {
      while size > rest.count { size /= 2 }
      let sql = InsertionTexts.text(table, rows: size, conflict)
      var values: [PostgreSQLValue] = []
      values.reserveCapacity(size * table.columns.count)
      for row in rest.prefix(size) { for value in row { values.append(value.postgreSQL) } }
      try connection.queue(sql, values)
      rest = rest.dropFirst(size)
    }
  }

  /// The rows of one statement: 2,048 parameters for 16 columns; a statement allows 65,535.
  private static let largestInsertion = 128
}

extension PostgreSQLRow: SQLRow {}

extension PostgreSQLResult {
  fileprivate func map<Result>(_ transform: (PostgreSQLRow) throws -> Result) rethrows -> [Result] {
    var results: [Result] = []
    results.reserveCapacity(count)
    for index in 0..<count { results.append(try transform(self[index])) }
    return results
  }
}

extension SQLValue {
  var postgreSQL: PostgreSQLValue {
    switch self {
    case .null: .null
    case .integer(let value): .integer(value)
    case .text(let value): .text(value)
    case .bytes(let value): .bytes(value)
    case .texts(let values): .texts(values)
    }
  }
}

/// The cached texts of insertions, which are slow to build.
private enum InsertionTexts {
  private struct Key: Hashable {
    var table: String
    var rows: Int
    var conflict: StorageTable.Conflict
  }

  private static let texts = Mutex<[Key: String]>([:])

  static func text(_ table: StorageTable, rows: Int, _ conflict: StorageTable.Conflict) -> String {
    let key = Key(table: table.name, rows: rows, conflict: conflict)
    return texts.withLock { texts in
      if let known = texts[key] { return known }
      let made = table.insertion(rows: rows, conflict)
      texts[key] = made
      return made
    }
  }
}
