import WatershedSQLite

/// Objects that were deleted before they were sent, by their record names.
///
/// An undo inserts the object again, and another copy of the store may have sent it: in both cases the record
/// name identifies the object.
extension MirrorMetadata {
  /// The number of objects that are remembered, so that an app that makes and deletes objects all the
  /// time does not fill the table: an undo and an import concern the last ones.
  private static let unsentLimit: Int64 = 1000

  /// The number of remembered deletions of records that the server had and lost, in some ten megabytes.
  ///
  /// Each other device sends all of these records again.
  private static let lostDeletionLimit: Int64 = 100_000

  package func keepUnsent(_ name: String, entity: String, key: Int64?) throws {
    try connection.run(
      "INSERT OR REPLACE INTO WSMIRROR_UNSENT (NAME, ENTITY, PK) VALUES (?, ?, ?)",
      [.text(name), .text(entity), key.map(SQLiteValue.integer) ?? .null]
    )
    try connection.run(
      "DELETE FROM WSMIRROR_UNSENT WHERE ID <= ?",
      [.integer(connection.lastInsertRowID - Self.unsentLimit)]
    )
  }

  /// The number of the newest remembered name of an edge; 0 if there is none.
  package func newestUnsentEdge() throws -> Int64 {
    let newest = try connection.scalar("SELECT MAX(ID) FROM WSMIRROR_UNSENT WHERE ENTITY = ''")
    guard case .integer(let number) = newest else { return 0 }
    return number
  }

  /// Forgets the edges whose links were removed before they were sent, up to a number.
  ///
  /// The feed was read to its end since: it had those that another copy of the store sent. The same link of a later
  /// record, which has the same name, is another device's.
  func forgetUnsentEdges(through number: Int64) throws {
    try connection.run(
      "DELETE FROM WSMIRROR_UNSENT WHERE ENTITY = '' AND ID <= ?",
      [.integer(number)]
    )
  }

  /// Remembers the deletion of a record or an edge that the server had and lost: other devices send it again.
  func keepLostDeletion(_ name: String) throws {
    try keep(name, in: "WSMIRROR_LOSTDELETION")
    try trimLostDeletions()
  }

  /// Remembers the records and edges whose deletions have not been sent: the zone is gone, and another device
  /// may send them again.
  func keepUnsentDeletions() throws {
    // Records last: where there are too many, links of deleted objects are forgotten before the objects.
    for source in ["WSMIRROR_EDGE WHERE LINKED = 0", "WSMIRROR_RECORD WHERE PK IS NULL"] {
      try connection.run(
        """
        INSERT OR REPLACE INTO WSMIRROR_LOSTDELETION (NAME)
          SELECT NAME FROM \(source) AND (PENDING = 2 OR SENTKIND = 2)
        """
      )
    }
    try trimLostDeletions()
  }

  private func trimLostDeletions() throws {
    try connection.run(
      """
      DELETE FROM WSMIRROR_LOSTDELETION
        WHERE ID <= (SELECT MAX(ID) FROM WSMIRROR_LOSTDELETION) - ?
      """,
      [.integer(Self.lostDeletionLimit)]
    )
  }

  /// Returns and removes the name of an object that was deleted before it was sent.
  package func takeUnsent(entity: String, key: Int64) throws -> String? {
    let found = try connection.scalar(
      "SELECT NAME FROM WSMIRROR_UNSENT WHERE ENTITY = ? AND PK = ? ORDER BY ID DESC LIMIT 1",
      [.text(entity), .integer(key)]
    )
    guard case .text(let name) = found else { return nil }
    _ = try takeUnsent(name)
    return name
  }

  /// Removes a name; returns whether an object of this name was deleted before it was sent.
  package func takeUnsent(_ name: String) throws -> Bool {
    let isUnsent = try forget(name, in: "WSMIRROR_UNSENT")
    let isLost = try forget(name, in: "WSMIRROR_LOSTDELETION")
    return isUnsent || isLost
  }

  /// Forgets the keys of these objects, as no undo inserts them again.
  ///
  /// Their names still identify records that another copy of the store has sent.
  package func forgetUnsentKeys() throws {
    try connection.run("UPDATE WSMIRROR_UNSENT SET PK = NULL")
  }
}
