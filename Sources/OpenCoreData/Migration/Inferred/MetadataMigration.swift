import Foundation
import WatershedSQLite

/// Updates the tables of a file that describe its entities: their numbers, the highest keys, the
/// model, the history, and the metadata of mirrorings.
struct MetadataMigration {
  private let migration: InPlaceMigration
  private let connection: SQLiteConnection
  /// Every entity that both models have, in its former and its current form.
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
    try renameInMirroringTables()
  }

  /// The keys of a new entity begin at 1; an entity that both models have never reuses a key.
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

  /// Keeps the app's own metadata entries; the entries that describe the model are replaced.
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

  // MARK: Metadata of mirrorings

  /// Mirrorings identify objects by entity and key: Apple's by the entity's number, in tables with
  /// the prefix ANSCK; ours by its name, in tables with the prefix WS.
  private func renameInMirroringTables() throws {
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

  /// Detaches records from the objects of a removed entity: a later entity of the same name reuses
  /// their keys.
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

  /// Renames all at once, because two names may have been swapped.
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

  /// The pending properties of a record are stored by name, one per line.
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

  /// The entities with renamed properties, each with the new names by the old ones.
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
