import Foundation

/// Decides whether and when a request that may be repeated is sent again.
package struct RetryPolicy: Hashable, Sendable {
  /// How often a request is sent at most.
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

  /// For calls that an app waits for: a person notices a second.
  package static let interactive = RetryPolicy(attempts: 3, firstDelay: 0.1, longestDelay: 2)
  /// Each request once.
  package static let never = RetryPolicy(attempts: 1, firstDelay: 0, longestDelay: 0)
  /// For a connection that is kept up: never ends.
  package static let persistent = RetryPolicy(attempts: .max, firstDelay: 0.05, longestDelay: 10)

  /// What to do after an attempt failed.
  package enum Decision: Hashable, Sendable {
    /// Send again after so many seconds.
    case retry(after: Double)
    /// Hand the error to the caller.
    case giveUp
  }

  /// Decides; `jitter` is a random fraction that spreads the clients of a service that comes back.
  package func decision(afterAttempt attempt: Int, error: CKError, jitter: Double) -> Decision {
    guard attempt < attempts, error.isTransient else { return .giveUp }
    if let asked = error.retryAfterSeconds {
      guard asked <= longestDelay else { return .giveUp }
      return .retry(after: max(0, asked))
    }
    return .retry(after: delay(afterAttempt: attempt, jitter: jitter))
  }

  /// The wait after so many attempts: doubled each time, the upper half of it random.
  package func delay(afterAttempt attempt: Int, jitter: Double) -> Double {
    let doublings = Double(min(max(attempt, 1) - 1, 30))
    let full = min(longestDelay, firstDelay * exp2(doublings))
    return full / 2 + full / 2 * jitter
  }

  /// The longest wait that a service can ask for: a day, in seconds.
  private static let longestAsked = 86_400.0

  /// What a service asked to wait, from none to a day; nil for what is not a finite number.
  ///
  /// A wait without an end would stop the client for good.
  package static func bounded(_ seconds: Double) -> Double? {
    seconds.isFinite ? min(max(seconds, 0), longestAsked) : nil
  }
}
