import Foundation

/// How long to wait after a failure: longer each time, with jitter, so that devices do not retry at
/// the same time.
package struct RetryBackoff: Hashable, Sendable {
  /// The wait after the first failure, in seconds.
  package var first: Double
  /// The longest wait without the server's request, in seconds.
  package var longest: Double
  /// The number of consecutive failures.
  package private(set) var failures = 0

  package init(first: Double = 0.5, longest: Double = 60) {
    self.first = first
    self.longest = longest
  }

  /// Records a failure and returns the wait in seconds.
  ///
  /// The wait is never below the server's request; `fraction` is a random number in `0 ..< 1`.
  package mutating func failed(retryAfter: Double?, fraction: Double) -> Double {
    let ceiling = min(longest, first * pow(2, Double(min(failures, 30))))
    failures += 1
    // Half fixed and half random: the lower bound prevents a storm of retries.
    let wait = ceiling / 2 + ceiling / 2 * fraction
    return max(wait, retryAfter ?? 0)
  }

  /// The longest wait that a server can request, in seconds.
  package static let longestRetryAfter = 3600.0

  /// A wait that a server requested, limited; 0 if it is not a valid number.
  package static func bounded(_ retryAfter: Double) -> Double {
    guard retryAfter > 0 else { return 0 }
    return min(retryAfter, longestRetryAfter)
  }

  /// Records a success.
  package mutating func succeeded() { failures = 0 }
}
