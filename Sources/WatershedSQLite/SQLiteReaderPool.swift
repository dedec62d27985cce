import Foundation
import Synchronization

/// A pool of read connections to one file; each one serves one reader at a time.
///
/// If no connection is free, a reader opens another one, so that a nested read never waits for its
/// outer read.
package final class SQLiteReaderPool: Sendable {
  private let idle = Mutex<[SQLiteConnection]>([])
  private let open: @Sendable () throws -> SQLiteConnection

  /// The most idle connections that are kept; each one costs a page cache and file handles.
  private static let idleLimit = 8

  /// `open` opens a connection and registers all functions and collations.
  package init(open: @escaping @Sendable () throws -> SQLiteConnection) {
    self.open = open
  }

  /// Runs the body with a connection.
  package func read<Result>(_ body: (SQLiteConnection) throws -> Result) throws -> Result {
    let connection = try idle.withLock { $0.popLast() } ?? open()
    defer {
      idle.withLock { idle in
        if idle.count < Self.idleLimit { idle.append(connection) }
      }
    }
    return try body(connection)
  }

  /// Closes the idle connections.
  package func drain() {
    let closing = idle.withLock { idle in
      defer { idle.removeAll() }
      return idle
    }
    _ = closing
  }
}
