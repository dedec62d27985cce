extension StorageFormat {
  /// Version 4: adds a condition that is true for all rows to three indexes in PostgreSQL, which then
  /// uses them only for statements with the same condition.
  ///
  /// Without them it uses an index over a whole zone to find a few records by their names, while it
  /// has no statistics or these show small zones. Servers of older versions get the same results
  /// without these indexes, more slowly.
  static let conditionalIndexes = Step(version: 4, oldestServer: 2) { dialect in
    guard dialect == .postgreSQL else { return [] }
    return [
      "DROP INDEX IF EXISTS records_by_change",
      """
      CREATE INDEX records_by_change ON records (partition, zone, change) WHERE change > 0
      """,
      "DROP INDEX IF EXISTS references_by_source",
      """
      CREATE INDEX references_by_source ON record_references (partition, zone, source) \
      WHERE source <> ''
      """,
      "DROP INDEX IF EXISTS directory_entries_by_owner",
      """
      CREATE INDEX directory_entries_by_owner ON directory_entries (kind, owner, name) \
      WHERE owner <> ''
      """,
    ]
  }
}
