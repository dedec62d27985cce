import CSQLite

extension SQLiteConnection {
  /// Whether the connection's file no longer has the name that it was opened by: it was removed,
  /// renamed, or another file took its place.
  ///
  /// Writes to such a file are lost, since no store has it (sqlite.org/howtocorrupt.html, 2.4).
  package var hasLostItsName: Bool {
    var isMoved: Int32 = 0
    let result = sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &isMoved)
    // A database in memory has no file that could move.
    return result == SQLITE_OK && isMoved != 0
  }

  /// Replaces the whole database by another, page by page, in one transaction of its own.
  ///
  /// The file stays the same one, so connections of other processes see an ordinary commit
  /// (sqlite.org/backup.html).
  package func replaceContents(by source: SQLiteConnection) throws {
    guard let backup = sqlite3_backup_init(handle, "main", source.handle, "main") else {
      throw lastError(sql: nil)
    }
    let step = sqlite3_backup_step(backup, -1)
    let result = sqlite3_backup_finish(backup)
    guard step == SQLITE_DONE, result == SQLITE_OK else {
      let code = result == SQLITE_OK ? step : result
      throw SQLiteError(
        code: code & 0xFF,
        extendedCode: code,
        message: String(cString: sqlite3_errstr(code)),
        sql: nil
      )
    }
  }
}
