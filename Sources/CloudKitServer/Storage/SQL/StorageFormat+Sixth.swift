extension StorageFormat {
  /// Kept replies go when their device has been silent for a day; servers of older versions keep them
  /// until the device acknowledges them, and have no use for the table.
  static let sixthVersion = Step(version: 6, oldestServer: 2) { dialect in
    // An earlier step may have made it already, from the same list of tables.
    StorageTables.replyDevices.definition(dialect).map {
      $0.replacing("CREATE TABLE ", with: "CREATE TABLE IF NOT EXISTS ")
        .replacing("CREATE INDEX ", with: "CREATE INDEX IF NOT EXISTS ")
    }
  }
}
