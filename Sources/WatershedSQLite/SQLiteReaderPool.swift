import Foundation
import Synchronization

/// Read connections to one file, lent to one reader at a time.
///
/// A reader that finds none free opens another, so a read inside a read never waits for itself.
package final class SQLiteReaderPool: Sendable {
  private let idle = Mutex<[SQLiteConnection]>([])
  private let open: @Sendable () throws -> SQLiteConnection

  /// Bounds the connections that are kept; each costs a page cache and file handles.
  private static let idleLimit = 8

  /// `open` makes a connection with all functions and collations registered.
  package init(open: @escaping @Sendable () throws -> SQLiteConnection) {
    self.open = open
  }

  /// Lends a connection to the body.
  package func read<Result>(_ body: (SQLiteConnection) throws -> Result) throws -> Result {
    let connection = try idle.withLock { $0.popLast() } ?? open()
    defer {
      idle.withLock { idle in
        if idle.count < Self.idleLimit { idle.append(connection) }
      }
    }
    return try body(connection)
  }

  /// Closes the connections that nobody uses.
  package func drain() {
    let closing = idle.withLock { idle in
      defer { idle.removeAll() }
      return idle
    }
    _ = closing
  }
}
