import Synchronization
import WatershedPostgreSQL

/// The right to end what one read runs on its connection.
///
/// Another read may have the connection afterwards, so the right ends with the read; a request that is
/// under way keeps the connection until the server has taken it.
final class StatementStop: Sendable {
  private let canceller: Mutex<PostgreSQLCanceller?>

  init(_ canceller: PostgreSQLCanceller?) { self.canceller = Mutex(canceller) }

  /// Waits for the server.
  func run() { canceller.withLock { $0?.cancel() } }

  func end() { canceller.withLock { $0 = nil } }
}
