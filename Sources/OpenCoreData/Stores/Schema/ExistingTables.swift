import WatershedSQLite

/// The tables of a file, for resolving a model against them.
package struct ExistingTables: Sendable {
  package struct EntityNumber: Sendable {
    package var number: Int32
    package var name: String
    package var superNumber: Int32
  }

  /// The rows of `Z_PRIMARYKEY` for the app's entities; Core Data's own entities start at 16000.
  package var numbers: [EntityNumber]
  /// The columns of each table, in file order.
  package var columns: [String: [String]]

  /// The first number of Core Data's own entities, for history and mirroring.
  package static let firstReservedNumber: Int32 = 16_000

  package init(numbers: [EntityNumber], columns: [String: [String]]) {
    self.numbers = numbers
    self.columns = columns
  }

  package init(reading connection: SQLiteConnection) throws {
    numbers = try connection.query(
      "SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY ORDER BY Z_ENT"
    ) { row in
      EntityNumber(
        number: Int32(truncatingIfNeeded: row.int64(0)),
        name: row.text(1),
        superNumber: Int32(truncatingIfNeeded: row.int64(2))
      )
    }
    .filter { $0.number < Self.firstReservedNumber }
    columns = [:]
    let rows = try connection.query(
      """
      SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c \
      WHERE m.type = 'table' ORDER BY m.name, c.cid
      """
    ) { ($0.text(0), $0.text(1)) }
    for (table, column) in rows { columns[table, default: []].append(column) }
  }

  func has(_ column: String, in table: String) -> Bool {
    columns[table]?.contains(column) ?? false
  }
}
