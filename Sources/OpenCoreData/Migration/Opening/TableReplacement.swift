import WatershedSQLite

/// Replaces every table, index and trigger of one database with those of another.
struct TableReplacement {
  let target: SQLiteConnection
  let source: SQLiteConnection

  private struct Item {
    let type: String
    let name: String
    let sql: String
  }

  /// The target has an open transaction; the source is not written to during the call.
  func run() throws {
    try clear()
    let items = try Self.items(of: source)
    let virtual = items.filter { $0.type == "table" && $0.sql.hasPrefix("CREATE VIRTUAL") }
    let shadows = Set(virtual.flatMap { item in Self.shadowSuffixes.map { item.name + $0 } })
    for item in items where item.type == "table" && !shadows.contains(item.name) {
      try target.execute(item.sql)
      try copy(item.name)
    }
    for item in items where item.type == "index" { try target.execute(item.sql) }
    for item in items where item.type != "table" && item.type != "index" {
      try target.execute(item.sql)
    }
    try copySequence()
  }

  /// The tables in which a spatial tree stores its nodes; they are created and dropped with it.
  private static let shadowSuffixes = ["_node", "_parent", "_rowid"]

  private static func items(of connection: SQLiteConnection) throws -> [Item] {
    try connection.query(
      "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL "
        + "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    ) { Item(type: $0.text(0), name: $0.text(1), sql: $0.text(2)) }
  }

  private func clear() throws {
    let items = try Self.items(of: target)
    for item in items where item.type == "trigger" || item.type == "view" {
      try target.execute("DROP \(item.type) \"\(item.name)\"")
    }
    let virtual = items.filter { $0.sql.hasPrefix("CREATE VIRTUAL") }
    for item in virtual { try target.execute("DROP TABLE \"\(item.name)\"") }
    let shadows = Set(virtual.flatMap { item in Self.shadowSuffixes.map { item.name + $0 } })
    for item in items
    where item.type == "table" && !item.sql.hasPrefix("CREATE VIRTUAL")
      && !shadows.contains(item.name)
    {
      try target.execute("DROP TABLE \"\(item.name)\"")
    }
  }

  private func copy(_ table: String) throws {
    let columns = try source.query(
      "SELECT name FROM pragma_table_info(?)",
      [.text(table)]
    ) { "\"\($0.text(0))\"" }
    let list = columns.joined(separator: ", ")
    let marks = columns.map { _ in "?" }.joined(separator: ", ")
    let insert = try target.makeStatement("INSERT INTO \"\(table)\" (\(list)) VALUES (\(marks))")
    let select = try source.makeStatement("SELECT \(list) FROM \"\(table)\"")
    while try select.step() {
      try insert.run(columns.indices.map { select.value($0) })
    }
  }

  /// Copies the counters of autoincrementing tables.
  private func copySequence() throws {
    let find = "SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'"
    guard try source.scalar(find) != nil, try target.scalar(find) != nil else { return }
    let rows = try source.query("SELECT name, seq FROM sqlite_sequence") {
      ($0.text(0), $0.int64(1))
    }
    for (name, last) in rows {
      try target.run("DELETE FROM sqlite_sequence WHERE name = ?", [.text(name)])
      try target.run(
        "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)",
        [.text(name), .integer(last)]
      )
    }
  }
}
