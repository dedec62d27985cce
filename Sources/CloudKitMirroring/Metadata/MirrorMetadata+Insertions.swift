import WatershedSQLite

/// The index of the history by which a scan finds the insertions of rows that have no record names.
///
/// Without the index each part of the scan would read the whole history; an index that always exists would be
/// written by each save of the app.
extension MirrorMetadata {
  func indexInsertions() throws {
    guard try connection.scalar("SELECT 1 FROM sqlite_master WHERE name = 'ACHANGE'") != nil else {
      return
    }
    try connection.execute(
      "CREATE INDEX IF NOT EXISTS WSMIRROR_INSERTION ON ACHANGE (ZENTITY, ZENTITYPK, ZCHANGETYPE)"
    )
  }

  func dropInsertionIndex() throws {
    try connection.execute("DROP INDEX IF EXISTS WSMIRROR_INSERTION")
  }
}
