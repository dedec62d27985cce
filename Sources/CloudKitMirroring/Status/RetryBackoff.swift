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

  /// The longest time that a server can make this device wait, in seconds.
  package static let longestRetryAfter = 3600.0

  /// A time that a server named, within reason; nothing where it is no time at all.
  package static func bounded(_ retryAfter: Double) -> Double {
    guard retryAfter > 0 else { return 0 }
    return min(retryAfter, longestRetryAfter)
  }

  /// Notes a success.
  package mutating func succeeded() { failures = 0 }
}
