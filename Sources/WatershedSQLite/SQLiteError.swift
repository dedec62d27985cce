import CSQLite

/// An error of SQLite, with the statement that failed.
package struct SQLiteError: Error, CustomStringConvertible, Sendable {
  /// SQLite's primary result code, `SQLITE_BUSY` for one.
  package let code: Int32
  /// SQLite's extended result code.
  package let extendedCode: Int32
  /// SQLite's error message.
  package let message: String
  /// The statement that was being run, if there is one.
  package let sql: String?

  package init(code: Int32, extendedCode: Int32, message: String, sql: String?) {
    self.code = code
    self.extendedCode = extendedCode
    self.message = message
    self.sql = sql
  }

  package var description: String {
    let place = sql.map { " in: \($0)" } ?? ""
    return "SQLite error \(extendedCode): \(message)\(place)"
  }

  /// Another connection holds the lock that was needed.
  package var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }
  /// A unique index, a primary key or another constraint was violated.
  package var isConstraint: Bool { code == SQLITE_CONSTRAINT }
  /// The file is not a database, or is damaged.
  package var isNotADatabase: Bool { code == SQLITE_NOTADB || code == SQLITE_CORRUPT }
  /// The statement was interrupted by its reader.
  package var isInterrupted: Bool { code == SQLITE_INTERRUPT }
  /// The disk is full.
  package var isFull: Bool { code == SQLITE_FULL }
  /// The file cannot be written.
  package var isReadOnly: Bool { code == SQLITE_READONLY }
  /// The file cannot be opened.
  package var cannotOpen: Bool { code == SQLITE_CANTOPEN }
}
