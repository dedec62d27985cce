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
    // Compared by bytes, as in SQLite: a database's collation depends on its machine.
    case (.postgreSQL, .text): "text COLLATE \"C\""
    case (.postgreSQL, .bytes): "bytea"
    }
  }

  /// A condition that a column's value is in a list, which is one parameter.
  func among(_ column: String, _ parameter: String) -> String {
    switch self {
    case .sqlite: "\(column) IN (SELECT value FROM json_each(\(parameter)))"
    case .postgreSQL: "\(column) = ANY (\(parameter))"
    }
  }

  /// A query for the rows of a table whose column has one of a list of names; the list is one
  /// parameter, and the condition covers the columns before that one in the index.
  ///
  /// The query makes PostgreSQL look each name up separately. Otherwise it may read all rows that
  /// match the condition, if it estimates them to be few, as for a new table and for the largest of
  /// many zones. A cluster gets the plain form, which its planner sends to one machine.
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
    // A subquery with an offset is not merged into the outer query.
    return """
      SELECT found.* FROM unnest(\(parameter)::text[]) AS wanted(name) CROSS JOIN LATERAL (
        SELECT \(columns) FROM \(table) WHERE \(condition) AND \(table).\(column) = wanted.name
        OFFSET 0
      ) AS found
      """
  }

  /// Adds a condition that is true for all rows, so that PostgreSQL can use the partial index with
  /// it.
  ///
  /// SQLite would use such a condition as the lower bound of its search.
  func naming(_ condition: String) -> String { self == .sqlite ? "" : "AND \(condition)" }

  /// Locks the rows until the end of the transaction.
  ///
  /// SQLite has one writer at a time and needs no row locks.
  var locked: String { self == .sqlite ? "" : "FOR UPDATE" }

  /// Excludes `locked`, and is shared between any number of transactions.
  var sharedLock: String { self == .sqlite ? "" : "FOR KEY SHARE" }
}
