import CPostgreSQL

/// Asks the server to end the statement that a connection runs.
///
/// The request travels on a connection of its own, which is opened and closed meanwhile
/// (postgresql.org/docs/current/libpq-cancel.html).
package final class PostgreSQLCanceller: @unchecked Sendable {
  // Unchecked: libpq's handle is never written after it was made, and any thread may use it.
  private let handle: OpaquePointer

  init?(_ connection: OpaquePointer) {
    guard let handle = PQgetCancel(connection) else { return nil }
    self.handle = handle
  }

  deinit { PQfreeCancel(handle) }

  /// Waits until the server has taken the request; nothing happens where no statement runs.
  ///
  /// A request that does not arrive changes nothing: the statement has its time limit.
  package func cancel() {
    var message = [CChar](repeating: 0, count: 256)
    _ = PQcancel(handle, &message, Int32(message.count))
  }
}
