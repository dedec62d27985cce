import WatershedSQLite

extension StorageFailure {
  init(_ error: SQLiteError) {
    kind =
      if error.isFull { .full } else if error.isBusy { .locked } else if error.isNotADatabase {
        .damaged
      } else { .other }
    cause = error
  }

  /// Runs a body of the SQLite engine, whose errors become this type; all others stay as they are.
  static func converting<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as SQLiteError {
      throw StorageFailure(error)
    }
  }
}
