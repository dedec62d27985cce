import WatershedSQLite

/// Tables of record names: those of deletions that the feed listed, of unreadable records, and of objects
/// that were deleted before they were sent.
extension MirrorMetadata {
  func keep(_ name: String, in table: String) throws {
    try connection.run("INSERT OR REPLACE INTO \(table) (NAME) VALUES (?)", [.text(name)])
  }

  /// Returns whether the table had the name.
  @discardableResult
  func forget(_ name: String, in table: String) throws -> Bool {
    try connection.run("DELETE FROM \(table) WHERE NAME = ?", [.text(name)])
    return connection.changes > 0
  }

  func has(_ name: String, in table: String) throws -> Bool {
    try connection.scalar("SELECT 1 FROM \(table) WHERE NAME = ?", [.text(name)]) != nil
  }

  func names(in table: String, after name: String, limit: Int) throws -> [String] {
    try connection.query(
      "SELECT NAME FROM \(table) WHERE NAME > ? ORDER BY NAME LIMIT ?",
      [.text(name), .integer(Int64(limit))]
    ) { $0.text(0) }
  }
}
