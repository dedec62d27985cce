extension StorageFormat {
  /// Kept replies are removed when their device was silent for a day; servers of older versions
  /// keep them until the device acknowledges them, and do not use the table.
  static let sixthVersion = Step(version: 6, oldestServer: 2) { dialect in
    // An earlier step may have created it already, from the same list of tables.
    StorageTables.replyDevices.definition(dialect).map {
      $0.replacing("CREATE TABLE ", with: "CREATE TABLE IF NOT EXISTS ")
        .replacing("CREATE INDEX ", with: "CREATE INDEX IF NOT EXISTS ")
    }
  }
}
