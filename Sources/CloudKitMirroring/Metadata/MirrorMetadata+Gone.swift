/// Records and edges that the feed deleted: their deletions are applied at the end of the feed.
extension MirrorMetadata {
  // MARK: Edges

  package func keepGoneEdge(_ name: String) throws { try keep(name, in: "WSMIRROR_GONEEDGE") }

  package func forgetGoneEdge(_ name: String) throws { try forget(name, in: "WSMIRROR_GONEEDGE") }

  package func isGoneEdge(_ name: String) throws -> Bool { try has(name, in: "WSMIRROR_GONEEDGE") }

  package func goneEdges(after name: String = "", limit: Int) throws -> [String] {
    try names(in: "WSMIRROR_GONEEDGE", after: name, limit: limit)
  }

  // MARK: Records of objects

  package func keepGoneRecord(_ name: String) throws { try keep(name, in: "WSMIRROR_GONERECORD") }

  /// Returns whether the deletion was noted.
  @discardableResult
  package func forgetGoneRecord(_ name: String) throws -> Bool {
    try forget(name, in: "WSMIRROR_GONERECORD")
  }

  package func isGoneRecord(_ name: String) throws -> Bool {
    try has(name, in: "WSMIRROR_GONERECORD")
  }

  package func goneRecords(after name: String = "", limit: Int) throws -> [String] {
    try names(in: "WSMIRROR_GONERECORD", after: name, limit: limit)
  }
}
