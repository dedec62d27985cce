/// Cancels the statement that a connection is running.
///
/// The request is sent over a separate connection, which is opened and closed for it
/// (postgresql.org/docs/current/libpq-cancel.html).
package final class PostgreSQLCanceller: @unchecked Sendable {
  // Unchecked: libpq's handle is immutable after its creation, and any thread may use it.
  private let handle: OpaquePointer
  private let libpq: LibPQ

  init?(_ connection: LibPQ.Connection, _ libpq: LibPQ) {
    guard let handle = libpq.getCancel(connection) else { return nil }
    self.libpq = libpq
    self.handle = handle
  }

  deinit { libpq.freeCancel(handle) }

  /// Sends the request and waits until the server received it; without a running statement it has
  /// no effect.
  ///
  /// If the request does not reach the server, the statement's own time limit ends it.
  package func cancel() {
    var message = [CChar](repeating: 0, count: 256)
    _ = libpq.cancel(handle, &message, Int32(message.count))
  }
}
