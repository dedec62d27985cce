import WatershedSQLite

/// Records and edges that the feed deleted: their deletions are applied at the end of the feed.
extension MirrorBooks {
  // MARK: Edges

  package func keepGoneEdge(_ name: String) throws { try keep(name, in: "WSMIRROR_GONEEDGE") }

  package func forgetGoneEdge(_ name: String) throws { try forget(name, in: "WSMIRROR_GONEEDGE") }

  package func isGoneEdge(_ name: String) throws -> Bool { try has(name, in: "WSMIRROR_GONEEDGE") }

  package func goneEdges(after name: String = "", limit: Int) throws -> [String] {
    try names(in: "WSMIRROR_GONEEDGE", after: name, limit: limit)
  }

  // MARK: Records of objects

  package func keepGoneRecord(_ name: String) throws { try keep(name, in: "WSMIRROR_GONERECORD") }

  package func forgetGoneRecord(_ name: String) throws {
    try forget(name, in: "WSMIRROR_GONERECORD")
  }

  package func isGoneRecord(_ name: String) throws -> Bool {
    try has(name, in: "WSMIRROR_GONERECORD")
  }

  package func goneRecords(after name: String = "", limit: Int) throws -> [String] {
    try names(in: "WSMIRROR_GONERECORD", after: name, limit: limit)
  }

  // MARK: Both

  private func keep(_ name: String, in table: String) throws {
    try connection.run("INSERT OR REPLACE INTO \(table) (NAME) VALUES (?)", [.text(name)])
  }

  private func forget(_ name: String, in table: String) throws {
    try connection.run("DELETE FROM \(table) WHERE NAME = ?", [.text(name)])
  }

  private func has(_ name: String, in table: String) throws -> Bool {
    try connection.scalar("SELECT 1 FROM \(table) WHERE NAME = ?", [.text(name)]) != nil
  }

  private func names(in table: String, after name: String, limit: Int) throws -> [String] {
    try connection.query(
      "SELECT NAME FROM \(table) WHERE NAME > ? ORDER BY NAME LIMIT ?",
      [.text(name), .integer(Int64(limit))]
    ) { $0.text(0) }
  }
}
