import CloudKitWebServices
import WatershedPostgreSQL

/// Decides whether a transaction that failed is run again, and what its caller is answered otherwise.
struct PostgreSQLRetries {
  /// How often a transaction that was in another's way is run again.
  private static let attempts = 16

  private var attempts = 0
  private var losses = 0

  /// Whether the transaction is run again.
  ///
  /// A wait for a lock or a statement that came to its limit is not repeated: the limit is the whole
  /// time that a request may wait. A commit whose outcome is not known is not repeated either: the
  /// client asks, and sees.
  mutating func repeats(after error: PostgreSQLError) -> Bool {
    attempts += 1
    guard attempts < Self.attempts, !error.leavesCommitOpen else { return false }
    if error.isTransient { return true }
    guard error.isConnectionLoss || error.isReadOnly else { return false }
    // Once: the connection may have been an old one. The next failure is the server's.
    losses += 1
    return losses == 1
  }

  /// The error in the service's words; nil for one that no later try mends.
  static func reply(to error: PostgreSQLError) -> ErrorDictionary? {
    if error.isTransient || error.isTimeout {
      return ErrorDictionary(.tryAgainLater, "the database is busy", retryAfter: 1)
    }
    guard
      error.isConnectionLoss || error.isReadOnly || error.isOverload || error.leavesCommitOpen
    else { return nil }
    return ErrorDictionary(.tryAgainLater, "the database cannot be reached", retryAfter: 1)
  }
}
