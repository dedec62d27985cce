import CSQLite
import Foundation

/// One connection to one database file.
///
/// The connection's owner confines it to one thread at a time: a store's writer lock or a reader
/// pool. Nothing else in the project opens a database file, because opening and closing the file
/// outside SQLite drops the process's POSIX locks (sqlite.org/howtocorrupt.html, 2.2).
package final class SQLiteConnection: @unchecked Sendable {
  // Unchecked: confined by its owner, see above.

  /// How a file is opened.
  package enum Mode: Sendable {
    case readOnly
    case readWrite
    case readWriteCreate
    /// For a file that no connection writes meanwhile: no lock is taken and no other file is
    /// created.
    case immutable
    /// For a file with a write-ahead log that no other connection has open: the log is read without
    /// an index file, and is kept when the connection is closed.
    case alone
  }

  /// When a transaction takes its locks.
  package enum TransactionKind: String, Sendable {
    case deferred = "DEFERRED"
    case immediate = "IMMEDIATE"
    case exclusive = "EXCLUSIVE"
  }

  /// The file, or `:memory:`.
  package let path: String
  let handle: OpaquePointer
  /// Retained here, since SQLite holds only its address.
  var tracer: SQLiteTracer?
  private var cache: [String: SQLiteStatement] = [:]

  /// The most cached statements; a store's own statements are far fewer.
  private static let cachedStatementLimit = 256

  /// Opens the file.
  ///
  /// `busyTimeout` is the longest wait for a lock that another connection holds, in seconds.
  package init(
    path: String,
    mode: Mode = .readWriteCreate,
    busyTimeout: Double = 10
  ) throws {
    var flags: Int32 = SQLITE_OPEN_NOMUTEX
    var name = path
    switch mode {
    case .readOnly: flags |= SQLITE_OPEN_READONLY
    case .readWrite: flags |= SQLITE_OPEN_READWRITE
    case .readWriteCreate: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    case .immutable:
      flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
      name = "\(URL(fileURLWithPath: path).absoluteString)?immutable=1"
    case .alone: flags |= SQLITE_OPEN_READWRITE
    }
    var opened: OpaquePointer?
    let result = sqlite3_open_v2(name, &opened, flags, nil)
    guard result == SQLITE_OK, let opened else {
      let message =
        opened.map { String(cString: sqlite3_errmsg($0)) }
        ?? String(cString: sqlite3_errstr(result))
      sqlite3_close_v2(opened)
      throw SQLiteError(
        code: result & 0xFF,
        extendedCode: result,
        message: "\(message): \(path)",
        sql: nil
      )
    }
    self.path = path
    handle = opened
    sqlite3_extended_result_codes(opened, 1)
    sqlite3_busy_timeout(opened, Int32(busyTimeout * 1000))
    if case .alone = mode {
      watershed_sqlite3_keep_log(opened)
      // Set before the first access to the log, so that its index is kept in heap memory
      // (sqlite.org/wal.html, "Use of WAL Without Shared-Memory").
      try execute("PRAGMA locking_mode = EXCLUSIVE")
    }
  }

  deinit {
    cache.removeAll()
    keepUnreadLog()
    // The deferred close: SQLite waits until the remaining statements are finalized.
    sqlite3_close_v2(handle)
  }

  /// Makes a log that cannot be read stay beside the file when the connection is closed.
  ///
  /// The last connection checkpoints the log and deletes it. Where the index of the log cannot be made,
  /// on a full disk for one, SQLite takes the lock that it cannot get in the index for another reader's,
  /// and the checkpoint that copied nothing for a success: the log would be deleted with commits that
  /// are nowhere else. Reading finds that out, and so does a failure to read.
  private func keepUnreadLog() {
    // Not for long: the connection that holds the lock checkpoints the log itself.
    sqlite3_busy_timeout(handle, 0)
    if sqlite3_exec(handle, "PRAGMA schema_version", nil, nil, nil) != SQLITE_OK {
      watershed_sqlite3_keep_log(handle)
    }
  }

  func lastError(sql: String?) -> SQLiteError {
    SQLiteError(
      code: sqlite3_errcode(handle) & 0xFF,
      extendedCode: sqlite3_extended_errcode(handle),
      message: String(cString: sqlite3_errmsg(handle)),
      sql: sql
    )
  }

  // MARK: Statements

  /// Runs statements that return nothing, separated by semicolons.
  package func execute(_ sql: String) throws {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
      throw lastError(sql: sql)
    }
  }

  /// Compiles a statement without the cache.
  package func makeStatement(_ sql: String) throws -> SQLiteStatement {
    var compiled: OpaquePointer?
    guard sqlite3_prepare_v3(handle, sql, -1, 0, &compiled, nil) == SQLITE_OK, let compiled else {
      throw lastError(sql: sql)
    }
    return SQLiteStatement(handle: compiled, connection: self, sql: sql)
  }

  /// A compiled statement from the cache, reset and ready; it must not be used while an earlier use
  /// of the same text is still being stepped.
  package func statement(_ sql: String) throws -> SQLiteStatement {
    if let kept = cache[sql] {
      kept.reset()
      return kept
    }
    let made = try makeStatement(sql)
    if cache.count >= Self.cachedStatementLimit { cache.removeAll() }
    cache[sql] = made
    return made
  }

  /// Compiles, binds and runs a statement that returns nothing.
  package func run(_ sql: String, _ values: [SQLiteValue] = []) throws {
    let statement = try statement(sql)
    try statement.run(values)
    statement.clearBindings()
  }

  /// Runs a query and maps every row.
  package func query<Row>(
    _ sql: String,
    _ values: [SQLiteValue] = [],
    _ map: (SQLiteStatement) throws -> Row
  ) throws -> [Row] {
    try query(sql, values, through: { _ in false }, map)
  }

  /// Runs a query and maps its rows up to the first one for which `isLast` is true; later rows are
  /// not read.
  package func query<Row>(
    _ sql: String,
    _ values: [SQLiteValue] = [],
    through isLast: (Row) -> Bool,
    _ map: (SQLiteStatement) throws -> Row
  ) throws -> [Row] {
    let statement = try statement(sql)
    statement.bind(values)
    defer {
      statement.reset()
      statement.clearBindings()
    }
    var rows: [Row] = []
    while try statement.step() {
      let row = try map(statement)
      rows.append(row)
      if isLast(row) { break }
    }
    return rows
  }

  /// The first column of the first row, or nil where there is no row.
  package func scalar(_ sql: String, _ values: [SQLiteValue] = []) throws -> SQLiteValue? {
    let statement = try statement(sql)
    statement.bind(values)
    defer {
      statement.reset()
      statement.clearBindings()
    }
    return try statement.step() ? statement.value(0) : nil
  }

  /// The row id of the last insert.
  package var lastInsertRowID: Int64 { sqlite3_last_insert_rowid(handle) }
  /// How many rows the last statement changed.
  package var changes: Int { Int(sqlite3_changes64(handle)) }
  /// Whether a transaction is open.
  package var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Whether all connections that are reading, of this process and others, see the newest state.
  ///
  /// A checkpoint that does not wait copies the frames of the log that every reader sees. A database
  /// without a log has no readers of an earlier state: they prevent commits. A log that another
  /// connection is checkpointing gives no answer.
  package var isReadAsNewest: Bool {
    get throws {
      let result = try query("PRAGMA wal_checkpoint(PASSIVE)") {
        (isBusy: $0.int64(0) != 0, frames: $0.int64(1), copied: $0.int64(2))
      }
      return result.first.map { !$0.isBusy && $0.frames == $0.copied } ?? false
    }
  }

  // MARK: Copies

  /// Writes a copy of the database's current contents to a file that does not exist yet.
  ///
  /// The copy is synced to the disk when the call returns; SQLite itself does not wait for that
  /// (sqlite.org/lang_vacuum.html, "VACUUM with an INTO clause").
  package func copy(to path: String) throws {
    let statement = try makeStatement("VACUUM INTO ?")
    try statement.run([.text(path)])
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.synchronize()
    try file.close()
  }

  // MARK: Transactions

  /// Runs the body in a transaction: committed when it returns, rolled back when it throws.
  package func transaction<Result>(
    _ kind: TransactionKind = .immediate,
    _ body: () throws -> Result
  ) throws -> Result {
    try execute("BEGIN \(kind.rawValue)")
    do {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      // Some errors (a full disk, an I/O error) have rolled the transaction back already.
      if isInTransaction { try? execute("ROLLBACK") }
      throw error
    }
  }
}
