import CSQLite

/// The condition that SQLite's progress handler checks at intervals, to interrupt a statement.
final class SQLiteInterruption {
  let isOver: () -> Bool

  init(_ isOver: @escaping () -> Bool) { self.isOver = isOver }
}

extension SQLiteConnection {
  /// Runs the body; a statement in it that runs when `isOver` becomes true ends with
  /// `SQLITE_INTERRUPT` (sqlite.org/c3ref/progress_handler.html).
  package func interrupting<Result>(
    when isOver: () -> Bool,
    _ body: () throws -> Result
  ) throws -> Result {
    try withoutActuallyEscaping(isOver) { isOver in
      let interruption = SQLiteInterruption(isOver)
      return try withExtendedLifetime(interruption) {
        sqlite3_progress_handler(
          handle,
          Self.stepsPerQuestion,
          { context in
            guard let context else { return 0 }
            let interruption = Unmanaged<SQLiteInterruption>.fromOpaque(context)
            return interruption.takeUnretainedValue().isOver() ? 1 : 0
          },
          Unmanaged.passUnretained(interruption).toOpaque()
        )
        defer { sqlite3_progress_handler(handle, 0, nil, nil) }
        return try body()
      }
    }
  }

  /// A few tens of microseconds of work, against which reading the clock costs little.
  private static let stepsPerQuestion: Int32 = 10_000
}
