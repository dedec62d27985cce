import WatershedSQLite

/// The values that objects had at earlier openings of the store, of those that were never sent.
///
/// Each opening makes the values that it finds the base. Where the server has a former one, the original of
/// this copy sent it, and the values that followed here are later.
extension MirrorMetadata {
  /// The number of values that are kept of one object: a device that is launched more often without a connection
  /// forgets the first ones, and takes the server's value for later.
  private static let trustedLimit: Int64 = 8

  package func keepTrusted(_ base: FieldBag, of record: String) throws {
    try connection.run(
      "INSERT INTO WSMIRROR_TRUSTED (RECORD, BASE) VALUES (?, ?)",
      [.text(record), .blob(base.encoded)]
    )
    try connection.run(
      """
      DELETE FROM WSMIRROR_TRUSTED WHERE RECORD = ?1 AND ID NOT IN
        (SELECT ID FROM WSMIRROR_TRUSTED WHERE RECORD = ?1 ORDER BY ID DESC LIMIT ?2)
      """,
      [.text(record), .integer(Self.trustedLimit)]
    )
  }

  /// The values of an object at earlier openings.
  package func trusted(of record: String) throws -> [FieldBag] {
    try connection.query(
      "SELECT BASE FROM WSMIRROR_TRUSTED WHERE RECORD = ? ORDER BY ID",
      [.text(record)]
    ) { try FieldBag(encoded: $0.blob(0)) }
  }

  package func forgetTrusted(of record: String) throws {
    try connection.run("DELETE FROM WSMIRROR_TRUSTED WHERE RECORD = ?", [.text(record)])
  }
}
