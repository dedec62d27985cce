import Synchronization
import WatershedPostgreSQL

/// The permission to cancel one read's statement on its connection.
///
/// Another read may use the connection afterwards, so the permission ends with the read; a cancel
/// request in progress keeps the connection until the server has received it.
final class StatementStop: Sendable {
  private let canceller: Mutex<PostgreSQLCanceller?>

  init(_ canceller: PostgreSQLCanceller?) { self.canceller = Mutex(canceller) }

  /// Waits until the server received the request.
  func run() { canceller.withLock { $0?.cancel() } }

  func end() { canceller.withLock { $0 = nil } }
}
