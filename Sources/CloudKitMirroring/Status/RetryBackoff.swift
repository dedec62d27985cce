import Foundation

/// How long to wait after a failure: longer each time, never in step with other devices.
package struct RetryBackoff: Hashable, Sendable {
  /// The wait after the first failure, in seconds.
  package var first: Double
  /// The longest wait of our own choosing, in seconds.
  package var longest: Double
  /// The failures in a row.
  package private(set) var failures = 0

  package init(first: Double = 0.5, longest: Double = 60) {
    self.first = first
    self.longest = longest
  }

  /// Notes a failure and says how long to wait.
  ///
  /// What the server asked for is never undercut; `fraction` is a random number in `0 ..< 1`.
  package mutating func failed(retryAfter: Double?, fraction: Double) -> Double {
    let ceiling = min(longest, first * pow(2, Double(min(failures, 30))))
    failures += 1
    // Half fixed and half random: bounded below, so that a storm of retries cannot form.
    let wait = ceiling / 2 + ceiling / 2 * fraction
    return max(wait, retryAfter ?? 0)
  }

  /// Notes a success.
  package mutating func succeeded() { failures = 0 }
}
