import CloudKitWebServices
import WatershedPostgreSQL

/// Decides whether a failed transaction is retried, and maps its error to a reply.
struct PostgreSQLRetries {
  /// The most attempts of a transaction that conflicts with others.
  private static let attempts = 16

  private var attempts = 0
  private var losses = 0

  /// Whether the transaction is retried.
  ///
  /// A wait for a lock or a statement that exceeded its limit is not retried: the limit is the
  /// longest that a request may wait. A commit with an unknown outcome is not retried either: the
  /// client checks the outcome.
  mutating func repeats(after error: PostgreSQLError) -> Bool {
    attempts += 1
    guard attempts < Self.attempts, !error.leavesCommitOpen else { return false }
    if error.isTransient { return true }
    guard error.isConnectionLoss || error.isReadOnly else { return false }
    // One retry: the connection may have been stale. The next failure is the server's.
    losses += 1
    return losses == 1
  }

  /// The reply to an error; nil for an error that a later attempt can't fix.
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
