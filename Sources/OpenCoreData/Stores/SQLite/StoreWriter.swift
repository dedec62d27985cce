import Foundation
import WatershedSQLite

/// A store's writing connection, lent to one thread at a time.
///
/// Between writes it also reads single rows for the sessions of contexts. Those reads share a
/// transaction, as beginning and ending one costs as much as reading a small row; whoever wants the
/// connection for anything else ends it first.
final class StoreWriter: @unchecked Sendable {
  // Sendable: everything is used under the lock.

  private let lock = NSRecursiveLock()
  /// Nil once the store is closed.
  private var connection: StoreConnection?
  /// How many have borrowed the connection, one inside the other on one thread.
  private var borrowers = 0
  /// How many reads have shared the transaction that is open; 0 where none is.
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

  /// Lends the connection where nobody else has it; nil also where it fails.
  func tryUse<Result>(_ body: (StoreConnection) throws -> Result) -> Result? {
    guard lock.try() else { return nil }
    defer { lock.unlock() }
    guard let connection, reads > 0 || !connection.connection.isInTransaction else { return nil }
    // Whoever asks can do without; an error shows again where it matters.
    return try? lend(connection, body)
  }

  /// Reads in the transaction that reads share, where nobody else has the connection; nil also where
  /// it fails.
  ///
  /// What was committed before the row cache reached an age is seen.
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
      // Whatever went wrong, the next read begins anew.
      try? endReading(connection)
      return nil
    }
  }

  /// Ends the transaction that reads share, so that it does not hold up the log.
  ///
  /// Where somebody has the connection at this moment, it is either for writing, which has ended the
  /// transaction, or a session's reading, and then that session ends it.
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

  /// Lets go of the connection, after a last use.
  func close(_ last: (StoreConnection) -> Void) {
    lock.withLock {
      defer { connection = nil }
      guard let connection else { return }
      try? endReading(connection)
      last(connection)
    }
  }
}
