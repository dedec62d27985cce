extension StorageFormat {
  /// The directory's entries got a table; servers of the second version do not use it.
  static let thirdVersion = Step(version: 3, oldestServer: 2) { dialect in
    // The step before may have created it already, from the same list of tables.
    StorageTables.entries.definition(dialect).map {
      $0.replacing("CREATE TABLE ", with: "CREATE TABLE IF NOT EXISTS ")
        .replacing("CREATE INDEX ", with: "CREATE INDEX IF NOT EXISTS ")
    }
  }
}
