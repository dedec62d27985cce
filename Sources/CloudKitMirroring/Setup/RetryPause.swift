import Foundation

/// The pause after a round that failed, and its error.
struct RetryPause {
  private var backoff: RetryBackoff
  /// The error of the last round; nil after one that succeeded.
  private(set) var error: (any Error)?
  /// When the pause ends; nil outside of one.
  private(set) var end: Date?
  /// Until when the server asked this device to wait, in seconds on the monotonic clock.
  private(set) var heldUntil: Double?

  init(_ backoff: RetryBackoff) {
    self.backoff = backoff
  }

  /// Begins a pause, and returns its length in seconds.
  ///
  /// `retryAfter` is what the server asked for, and `fraction` a random number in `0 ..< 1`.
  mutating func begin(
    after error: any Error,
    retryAfter: Double?,
    fraction: Double,
    now: Date,
    uptime: Double
  ) -> Double {
    let seconds = backoff.failed(retryAfter: retryAfter, fraction: fraction)
    self.error = error
    end = now.addingTimeInterval(seconds)
    heldUntil = retryAfter.map { uptime + $0 }
    return seconds
  }

  /// Notes that the pause is over; the error stays until a round succeeds.
  mutating func noteEnd() {
    end = nil
    heldUntil = nil
  }

  /// Notes a round that succeeded.
  mutating func succeed() {
    error = nil
    end = nil
    backoff.succeeded()
  }
}
