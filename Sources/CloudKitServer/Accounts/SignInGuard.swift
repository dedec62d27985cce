import Synchronization

/// Counts wrong passwords, so that nobody can try them all.
final class SignInGuard: Sendable {
  private struct Count {
    var failures: Int
    /// Milliseconds since 1970.
    var until: Int64
  }

  /// Bounds the memory; names that nobody has are counted too.
  private static let limit = 10_000

  private let counts = Mutex<[String: Count]>([:])

  /// Seconds to wait, or nil where a sign-in may be tried.
  func pause(for userName: String, now: Int64, limits: ServiceLimits) -> Double? {
    counts.withLock { counts in
      guard let count = counts[userName], count.failures >= limits.failedSignIns,
        count.until > now
      else { return nil }
      return Double(count.until - now) / 1000
    }
  }

  func noteFailure(of userName: String, now: Int64, limits: ServiceLimits) {
    counts.withLock { counts in
      if counts.count >= Self.limit { counts = counts.filter { $0.value.until > now } }
      var count = counts[userName] ?? Count(failures: 0, until: now)
      if count.until <= now, count.failures >= limits.failedSignIns { count.failures = 0 }
      count.failures += 1
      count.until = now + Int64(limits.signInPause * 1000)
      counts[userName] = count
    }
  }

  func noteSuccess(of userName: String) {
    _ = counts.withLock { $0.removeValue(forKey: userName) }
  }
}
