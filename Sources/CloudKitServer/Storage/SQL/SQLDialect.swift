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

  /// A query for the rows of a table that have one of a list of names in a column; the list is one
  /// parameter, and the condition is about the columns before that one in the index.
  ///
  /// PostgreSQL looks for each name by itself. It would rather read all rows that meet the condition
  /// where it takes them to be few, as it does of a new table and of the largest of many zones. A
  /// cluster is asked in the plain form, which its planner is sure to send to one machine.
  func rows(
    _ columns: String,
    of table: String,
    where condition: String,
    and column: String,
    among parameter: String,
    isCluster: Bool
  ) -> String {
    if self == .sqlite || isCluster {
      return "SELECT \(columns) FROM \(table) WHERE \(condition) AND \(among(column, parameter))"
    }
    // What has an offset stays a query of its own.
    return """
      SELECT found.* FROM unnest(\(parameter)::text[]) AS wanted(name) CROSS JOIN LATERAL (
        SELECT \(columns) FROM \(table) WHERE \(condition) AND \(table).\(column) = wanted.name
        OFFSET 0
      ) AS found
      """
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
