/// A statement and the values of its parameters.
struct SQLStatement: Hashable {
  var sql: String
  var values: [SQLValue]

  /// The columns in the order in which `SQLSnapshot` reads them.
  static let zoneColumns = "name, number, change, ending, horizon"

  static let recordColumns = RecordColumn.allCases.map(\.definition.name).joined(separator: ", ")
}

extension PrefetchedRead {
  /// The statement of the read.
  func statement(_ dialect: SQLDialect) -> SQLStatement {
    switch self {
    case .database(let id):
      SQLStatement(
        sql: "SELECT counter, indexes FROM databases WHERE partition = $1",
        values: [.integer(id.rawValue)]
      )
    case .zones(let id, let names):
      SQLStatement(
        sql: """
          SELECT \(SQLStatement.zoneColumns) FROM zones
          WHERE partition = $1 AND \(dialect.among("name", "$2"))
          """,
        values: [.integer(id.rawValue), .texts(names)]
      )
    case .changes(let id, let range):
      SQLStatement(
        sql: """
          SELECT \(SQLStatement.recordColumns) FROM records
          WHERE partition = $1 AND zone = $2 AND change > $3 AND change <= $4
            \(dialect.naming("change > 0"))
            \(range.includesTombstones ? "" : "AND deleted = 0")
          ORDER BY change \(range.isReversed ? "DESC" : "ASC") LIMIT $5
          """,
        values: [
          .integer(id.rawValue), .integer(range.zone.rawValue), .integer(range.after.rawValue),
          .integer(range.through?.rawValue ?? .max), .integer(Int64(range.limit)),
        ]
      )
    }
  }
}

extension SQLSnapshot {
  /// Runs a read that may have been prefetched, with the same statement.
  func query<Result>(
    _ read: PrefetchedRead,
    _ map: (Session.Row) throws -> Result
  ) throws -> [Result] {
    let statement = read.statement(connection.dialect)
    return try connection.query(statement.sql, statement.values, map)
  }
}
