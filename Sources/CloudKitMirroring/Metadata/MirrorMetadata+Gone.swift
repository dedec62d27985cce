import WatershedSQLite

/// Records and edges that the feed deleted: their deletions are applied at the end of the feed.
extension MirrorMetadata {
  // MARK: Edges

  package func keepGoneEdge(_ name: String) throws { try keep(name, in: "WSMIRROR_GONEEDGE") }

  package func forgetGoneEdge(_ name: String) throws { try forget(name, in: "WSMIRROR_GONEEDGE") }

  package func isGoneEdge(_ name: String) throws -> Bool { try has(name, in: "WSMIRROR_GONEEDGE") }

  package func goneEdges(after name: String = "", limit: Int) throws -> [String] {
    try names(in: "WSMIRROR_GONEEDGE", after: name, limit: limit)
  }

  /// Notes an edge whose record this device has deleted: the feed will list its tombstone, also if the
  /// link is made again before.
  package func keepRemovedEdge(_ name: String) throws { try keep(name, in: "WSMIRROR_REMOVEDEDGE") }

  func isRemovedEdge(_ name: String) throws -> Bool { try has(name, in: "WSMIRROR_REMOVEDEDGE") }

  /// The feed was read to its end: no tombstone of this device is left in it, except those that wait for the
  /// reply to a batch.
  package func forgetRemovedEdges() throws {
    try connection.run(
      "DELETE FROM WSMIRROR_REMOVEDEDGE WHERE NAME NOT IN (SELECT NAME FROM WSMIRROR_GONEEDGE)"
    )
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
