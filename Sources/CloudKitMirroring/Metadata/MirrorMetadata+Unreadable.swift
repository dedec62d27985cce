import WatershedSQLite

/// Unreadable records, and changes that the server refused: both are retried later.
extension MirrorMetadata {
  package func keepUnreadable(_ name: String, reason: String) throws {
    try connection.run(
      "INSERT OR REPLACE INTO WSMIRROR_UNREADABLE (NAME, REASON) VALUES (?, ?)",
      [.text(name), .text(reason)]
    )
  }

  package func forgetUnreadable(_ name: String) throws {
    try forget(name, in: "WSMIRROR_UNREADABLE")
  }

  package func isUnreadable(_ name: String) throws -> Bool {
    try has(name, in: "WSMIRROR_UNREADABLE")
  }

  package func unreadableRecords(after name: String = "", limit: Int) throws -> [String] {
    try names(in: "WSMIRROR_UNREADABLE", after: name, limit: limit)
  }

  package func unreadableCount() throws -> Int {
    let value = try connection.scalar("SELECT COUNT(*) FROM WSMIRROR_UNREADABLE")
    if case .integer(let count) = value { return Int(count) }
    return 0
  }

  /// Makes all refused changes pending again.
  package func unparkChanges() throws {
    for table in ["WSMIRROR_RECORD", "WSMIRROR_EDGE"] {
      try connection.run("UPDATE \(table) SET PARKED = NULL WHERE PARKED IS NOT NULL")
    }
  }
}
