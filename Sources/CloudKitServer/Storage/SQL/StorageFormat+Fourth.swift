extension StorageFormat {
  /// In PostgreSQL three indexes got conditions that hold for every row: it uses them for the
  /// statements that repeat the condition and for no others.
  ///
  /// Without them it takes an index over a whole zone to find a few records by their names, as long
  /// as it has no statistics or these tell of small zones. Servers of the older versions find the
  /// same without these indexes, more slowly.
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
