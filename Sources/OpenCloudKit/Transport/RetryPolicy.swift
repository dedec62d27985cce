import Foundation

/// Decides whether and when a request that may be repeated is sent again.
package struct RetryPolicy: Hashable, Sendable {
  /// The most attempts for a request.
  package var attempts: Int
  /// Seconds before the second attempt; doubled for each further one.
  package var firstDelay: Double
  /// The longest wait between two attempts; a service that asks for more ends the retries.
  package var longestDelay: Double

  package init(attempts: Int, firstDelay: Double, longestDelay: Double) {
    self.attempts = attempts
    self.firstDelay = firstDelay
    self.longestDelay = longestDelay
  }

  /// For calls that a user waits for.
  package static let interactive = RetryPolicy(attempts: 3, firstDelay: 0.1, longestDelay: 2)
  /// A single attempt.
  package static let never = RetryPolicy(attempts: 1, firstDelay: 0, longestDelay: 0)
  /// For a connection that is kept open: retries without end.
  package static let persistent = RetryPolicy(attempts: .max, firstDelay: 0.05, longestDelay: 10)

  /// The next step after a failed attempt.
  package enum Decision: Hashable, Sendable {
    /// Send again after a number of seconds.
    case retry(after: Double)
    /// Return the error to the caller.
    case giveUp
  }

  /// Decides; `jitter` is a random fraction that spreads the requests of clients after an outage.
  package func decision(afterAttempt attempt: Int, error: CKError, jitter: Double) -> Decision {
    guard attempt < attempts, error.isTransient else { return .giveUp }
    if let asked = error.retryAfterSeconds {
      guard asked <= longestDelay else { return .giveUp }
      return .retry(after: max(0, asked))
    }
    return .retry(after: delay(afterAttempt: attempt, jitter: jitter))
  }

  /// The delay after a number of attempts: doubled each time, its upper half random.
  package func delay(afterAttempt attempt: Int, jitter: Double) -> Double {
    let doublings = Double(min(max(attempt, 1) - 1, 30))
    let full = min(longestDelay, firstDelay * exp2(doublings))
    return full / 2 + full / 2 * jitter
  }

  /// The longest delay that a service can ask for: a day, in seconds.
  private static let longestAsked = 86_400.0

  /// The delay that a service asked for, limited to a day; nil if it is not a finite number.
  ///
  /// An infinite delay would stop the client forever.
  package static func bounded(_ seconds: Double) -> Double? {
    seconds.isFinite ? min(max(seconds, 0), longestAsked) : nil
  }
}
