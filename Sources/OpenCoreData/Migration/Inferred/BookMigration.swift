import Foundation
import WatershedSQLite

/// Brings up to date what the file says about its entities: their numbers, the keys given out, the
/// model, the history, and the books that others keep in the file.
struct BookMigration {
  private let migration: InPlaceMigration
  private let connection: SQLiteConnection
  /// Every entity that goes on, with what it was.
  private let pairs: [(former: EntityTable, current: EntityTable)]

  init(_ migration: InPlaceMigration) {
    self.migration = migration
    connection = migration.connection
    pairs = migration.destination.entities.compactMap { entity in
      migration.source(of: entity.layout.entity).map { ($0, entity) }
    }
  }

  func run() throws {
    try renumber()
    try writeModel()
    try HistoryMigration(migration, pairs: pairs).run()
    try tellOthers()
  }

  /// A new entity counts from 0; one that goes on never gives out a key twice.
  private func renumber() throws {
    let counted = try connection.query("SELECT Z_ENT, Z_MAX FROM Z_PRIMARYKEY") {
      (Int32(truncatingIfNeeded: $0.int64(0)), $0.int64(1))
    }
    let last = Dictionary(counted, uniquingKeysWith: { first, _ in first })
    try connection.run(
      "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT < \(ExistingTables.firstReservedNumber)"
    )
    for entity in migration.destination.entities {
      var count: Int64 = 0
      if entity.superNumber == 0 {
        let formers = pairs.filter { $0.current.rootNumber == entity.number }
          .map(\.former.rootNumber)
        count = formers.compactMap { last[$0] }.max() ?? 0
        let held = try connection.scalar("SELECT MAX(Z_PK) FROM \(entity.table)")
        if case .integer(let key)? = held { count = max(count, key) }
      }
      try connection.run(
        "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, ?, ?)",
        [
          .integer(Int64(entity.number)), .text(entity.name),
          .integer(Int64(entity.superNumber)), .integer(count),
        ]
      )
    }
  }

  /// What the app wrote into the metadata stays; what describes the model is the new one's.
  private func writeModel() throws {
    guard var metadata = try StoreMetadata.read(connection)?.metadata else { return }
    for (key, value) in StoreMetadata.new(for: migration.destination) { metadata[key] = value }
    metadata[NSPersistentStoreDeferredLightweightMigrationOptionKey] =
      migration.isDeferred ? true : nil
    try StoreMetadata.write(metadata, to: connection)
    try connection.execute("CREATE TABLE IF NOT EXISTS Z_MODELCACHE (Z_CONTENT BLOB)")
    try connection.run("DELETE FROM Z_MODELCACHE")
    try connection.run(
      "INSERT INTO Z_MODELCACHE (Z_CONTENT) VALUES (?)",
      [.blob(ModelArchive.modelCache(for: migration.destination.model))]
    )
  }

  // MARK: Books of others

  /// Mirrors name objects by entity and key: Apple's by the entity's number, in tables that begin
  /// with ANSCK; ours by its name, in tables that begin with WS.
  private func tellOthers() throws {
    for (table, columns) in migration.file.columns.sorted(by: { $0.key < $1.key }) {
      if table.hasPrefix("ANSCK"), columns.contains("ZENTITYID") {
        try renumber("ZENTITYID", in: table)
      }
      guard table.hasPrefix("WS") else { continue }
      for column in ["ENTITY", "FIRSTENTITY", "SECONDENTITY"] where columns.contains(column) {
        let relationship = column.replacing("ENTITY", with: "RELATIONSHIP")
        if columns.contains(relationship) { try rename(relationship, of: column, in: table) }
        if column == "ENTITY", columns.contains("PK") {
          for lines in ["PROPERTIES", "EDGES", "SENT"] where columns.contains(lines) {
            try renameLines(lines, in: table)
          }
          try orphan(in: table)
        }
        try rename(column, in: table)
      }
    }
  }

  /// The objects of a removed entity are gone; a later entity of its name gives out their keys anew.
  private func orphan(in table: String) throws {
    let removed = migration.source.entities.map(\.name)
      .filter { name in !pairs.contains { $0.former.name == name } }
    guard !removed.isEmpty else { return }
    let names = removed.map(text).joined(separator: ", ")
    try connection.run("UPDATE \(table) SET PK = NULL WHERE ENTITY IN (\(names))")
  }

  private func renumber(_ column: String, in table: String) throws {
    let cases = pairs.filter { $0.former.number != $0.current.number }
      .map { "WHEN \($0.former.number) THEN \($0.current.number)" }
    guard !cases.isEmpty else { return }
    try connection.run(
      "UPDATE \(table) SET \(column) = CASE \(column) \(cases.joined(separator: " ")) "
        + "ELSE \(column) END"
    )
  }

  private func rename(_ column: String, in table: String) throws {
    let renamed = pairs.filter { $0.former.name != $0.current.name }
    guard !renamed.isEmpty else { return }
    let cases = renamed.map { "WHEN \(text($0.former.name)) THEN \(text($0.current.name))" }
    try connection.run(
      "UPDATE \(table) SET \(column) = CASE \(column) \(cases.joined(separator: " ")) "
        + "ELSE \(column) END"
    )
  }

  /// All names at once, as two may have been swapped.
  private func rename(_ column: String, of entityColumn: String, in table: String) throws {
    for (former, names) in renamedProperties() {
      let cases = names.sorted { $0.key < $1.key }.map {
        "WHEN \(text($0.key)) THEN \(text($0.value))"
      }
      try connection.run(
        "UPDATE \(table) SET \(column) = CASE \(column) \(cases.joined(separator: " ")) "
          + "ELSE \(column) END WHERE \(entityColumn) = ?",
        [.text(former.name)]
      )
    }
  }

  /// The properties of a record that are to be sent are noted by name, a line for each.
  private func renameLines(_ column: String, in table: String) throws {
    for (former, names) in renamedProperties() {
      let noted = try connection.query(
        "SELECT rowid, \(column) FROM \(table) WHERE ENTITY = ? AND \(column) <> ''",
        [.text(former.name)]
      ) { ($0.int64(0), $0.text(1)) }
      for (row, lines) in noted {
        let renamed = lines.split(separator: "\n").map { names[String($0)] ?? String($0) }
        let text = renamed.sorted().joined(separator: "\n")
        guard text != lines else { continue }
        try connection.run(
          "UPDATE \(table) SET \(column) = ? WHERE rowid = ?",
          [.text(text), .integer(row)]
        )
      }
    }
  }

  /// The entities some of whose properties have other names now, with the new names by the old.
  private func renamedProperties() -> [(EntityTable, [String: String])] {
    pairs.compactMap { former, current in
      let names = migration.difference.formerNames(in: current.layout.entity)
        .filter { $0.key != $0.value }
      guard !names.isEmpty else { return nil }
      return (former, Dictionary(names.map { ($1, $0) }, uniquingKeysWith: { $1 }))
    }
  }

  private func text(_ name: String) -> String { ColumnSource.literal(.text(name)) }
}
