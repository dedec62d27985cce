/// Where the engines' SQL differs; the statements are the same otherwise, with parameters written
/// `$1`, `$2` in the order of their first use.
enum SQLDialect: Sendable {
  case sqlite
  case postgreSQL

  func type(of kind: StorageTable.Column.Kind) -> String {
    switch (self, kind) {
    case (.sqlite, .integer): "INTEGER"
    case (.sqlite, .text): "TEXT"
    case (.sqlite, .bytes): "BLOB"
    case (.postgreSQL, .integer): "bigint"
    // By bytes, as SQLite compares: the collation of a database depends on its machine.
    case (.postgreSQL, .text): "text COLLATE \"C\""
    case (.postgreSQL, .bytes): "bytea"
    }
  }

  /// A condition that the column is one of a list, which is one parameter.
  func among(_ column: String, _ parameter: String) -> String {
    switch self {
    case .sqlite: "\(column) IN (SELECT value FROM json_each(\(parameter)))"
    case .postgreSQL: "\(column) = ANY (\(parameter))"
    }
  }

  /// Says a condition that every row meets, so that PostgreSQL may take the index that has it.
  ///
  /// SQLite would take such a condition for the bound to begin at.
  func naming(_ condition: String) -> String { self == .sqlite ? "" : "AND \(condition)" }

  /// Keeps the rows as they are until the end of the transaction.
  ///
  /// SQLite has one writer at a time and nothing to lock.
  var locked: String { self == .sqlite ? "" : "FOR UPDATE" }

  /// Keeps others from `locked`, and lets any number share.
  var sharedLock: String { self == .sqlite ? "" : "FOR KEY SHARE" }
}
