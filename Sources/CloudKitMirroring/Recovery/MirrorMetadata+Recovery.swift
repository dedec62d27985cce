import Foundation
import WatershedSQLite

extension MirrorMetadata {
  private static let recoveryColumns = "ID, RECORD, ENTITY, REASON, NOTED, FIELDS"

  package func keep(_ edit: RecoveredEdit) throws {
    try connection.run(
      """
      INSERT INTO WSMIRROR_RECOVERY (RECORD, ENTITY, REASON, NOTED, FIELDS) VALUES (?, ?, ?, ?, ?)
      """,
      [
        .text(edit.record), .text(edit.entityName), .text(edit.reason), .real(edit.noted),
        .blob(edit.fields.encoded),
      ]
    )
  }

  /// The number of the newest entry; 0 without one.
  func newestRecovery() throws -> Int64 {
    let newest = try connection.scalar("SELECT MAX(ID) FROM WSMIRROR_RECOVERY")
    guard case .integer(let id) = newest else { return 0 }
    return id
  }

  /// The bytes of the entries after one of them.
  func recoveryBytes(after id: Int64) throws -> Int64 {
    let bytes = try connection.scalar(
      "SELECT SUM(LENGTH(FIELDS)) FROM WSMIRROR_RECOVERY WHERE ID > ?",
      [.integer(id)]
    )
    guard case .integer(let count) = bytes else { return 0 }
    return count
  }

  /// The entries of the recovery list after one of them, oldest first.
  package func recoveredEdits(after id: Int64 = 0, limit: Int = 1000) throws -> [RecoveredEdit] {
    try connection.query(
      "SELECT \(Self.recoveryColumns) FROM WSMIRROR_RECOVERY WHERE ID > ? ORDER BY ID LIMIT ?",
      [.integer(id), .integer(Int64(limit))],
      Self.edit
    )
  }

  package func recoveredEdit(_ id: Int64) throws -> RecoveredEdit? {
    try connection.query(
      "SELECT \(Self.recoveryColumns) FROM WSMIRROR_RECOVERY WHERE ID = ?",
      [.integer(id)],
      Self.edit
    ).first
  }

  func update(_ edit: RecoveredEdit) throws {
    try connection.run(
      "UPDATE WSMIRROR_RECOVERY SET FIELDS = ? WHERE ID = ?",
      [.blob(edit.fields.encoded), .integer(edit.id)]
    )
  }

  package func discardRecoveredEdit(_ id: Int64) throws {
    try connection.run("DELETE FROM WSMIRROR_RECOVERY WHERE ID = ?", [.integer(id)])
  }

  private static func edit(_ row: SQLiteStatement) throws -> RecoveredEdit {
    var edit = RecoveredEdit(
      record: row.text(1),
      entityName: row.text(2),
      reason: row.text(3),
      noted: row.double(4),
      fields: try FieldBag(encoded: row.blob(5))
    )
    edit.id = row.int64(0)
    return edit
  }
}
