extension StorageFormat {
  /// Adds a condition that is true for all rows to three indexes in PostgreSQL, which then uses
  /// them only for statements with the same condition.
  ///
  /// Without them it uses an index over a whole zone to find a few records by their names, while it
  /// has no statistics or these show small zones. Servers of older versions get the same results
  /// without these indexes, more slowly.
  static let fourthVersion = Step(version: 4, oldestServer: 2) { dialect in
    guard dialect == .postgreSQL else { return [] }
    return [
      (StorageTables.records, "records_by_change"),
      (StorageTables.references, "references_by_source"),
      (StorageTables.entries, "directory_entries_by_owner"),
    ].flatMap { table, name in
      ["DROP INDEX IF EXISTS \(name)"]
        + table.indexes.filter { $0.name == name }.map { table.definition(of: $0, dialect) }
    }
  }
}
