import Foundation
import WatershedSQLite

/// A store's writing connection, lent to one thread at a time.
///
/// Between writes it also reads single rows for the sessions of contexts. Those reads share a
/// transaction, as beginning and ending one costs as much as reading a small row; any other use of
/// the connection ends it first.
final class StoreWriter: @unchecked Sendable {
  // Sendable: everything is used under the lock.

  private let lock = NSRecursiveLock()
  /// Nil once the store is closed.
  private var connection: StoreConnection?
  /// The depth of nested uses of the connection by one thread.
  private var borrowers = 0
  /// The number of reads that have shared the open transaction; 0 where none is open.
  private var reads = 0
  /// The row cache's age when that transaction began.
  private var age = 0

  init(_ connection: StoreConnection) {
    self.connection = connection
  }

  /// Lends the connection, which the calling thread may already hold; nil once the store is closed.
  func use<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result? {
    try lock.withLock {
      guard let connection else { return nil }
      return try lend(connection, body)
    }
  }

  private func lend<Result>(
    _ connection: StoreConnection,
    _ body: (StoreConnection) throws -> Result
  ) throws -> Result {
    try endReading(connection)
    borrowers += 1
    defer { borrowers -= 1 }
    return try body(connection)
  }

  /// Lends the connection if no thread holds it; nil also if the body throws.
  func tryUse<Result>(_ body: (StoreConnection) throws -> Result) -> Result? {
    guard lock.try() else { return nil }
    defer { lock.unlock() }
    guard let connection, reads > 0 || !connection.connection.isInTransaction else { return nil }
    // The caller does not depend on the result; a lasting error appears again at the next write.
    return try? lend(connection, body)
  }

  /// Reads in the shared read transaction, if no thread holds the connection; nil also if it fails.
  ///
  /// Sees every commit that was made before the row cache reached `age`.
  func tryRead<Result>(age: Int, _ body: (StoreConnection) throws -> Result) -> Result? {
    guard lock.try() else { return nil }
    defer { lock.unlock() }
    guard let connection, borrowers == 0 else { return nil }
    do {
      if reads >= StoreSession.readLimit || self.age != age { try endReading(connection) }
      if reads == 0 {
        try connection.connection.run("BEGIN")
        self.age = age
      }
      reads += 1
      return try body(connection)
    } catch {
      // After any error, the next read begins a new transaction.
      try? endReading(connection)
      return nil
    }
  }

  /// Ends the shared read transaction, so that the log can be checkpointed.
  ///
  /// If another thread holds the connection, it either writes, and has ended the transaction, or it
  /// reads for a session, which ends the transaction itself.
  func endReading() {
    guard lock.try() else { return }
    defer { lock.unlock() }
    if let connection { try? endReading(connection) }
  }

  private func endReading(_ connection: StoreConnection) throws {
    guard reads > 0 else { return }
    reads = 0
    try connection.connection.run("COMMIT")
  }

  /// Closes the connection, after a last use.
  func close(_ last: (StoreConnection) -> Void) {
    lock.withLock {
      defer { connection = nil }
      guard let connection else { return }
      try? endReading(connection)
      last(connection)
    }
  }
}
