import Synchronization

/// Limits the rate of requests with a token bucket for each sender: it is refilled at the rate and
/// holds one burst.
final class RequestThrottle: Sendable {
  private struct Bucket {
    var rate: Double
    var burst: Double
    var tokens: Double
    /// Milliseconds since 1970.
    var filled: Int64

    /// Adds the tokens for the elapsed time.
    mutating func fill(now: Int64) {
      let passed = max(0, Double(now - filled) / 1000)
      tokens = min(burst, tokens + passed * rate)
      filled = now
    }
  }

  /// The most senders that are kept.
  private let limit: Int
  private let buckets = Mutex<[String: Bucket]>([:])

  init(limit: Int = 100_000) { self.limit = limit }

  /// Takes tokens from the sender's bucket; returns the seconds to wait if it has fewer.
  func delay(
    for sender: String,
    rate: Double,
    burst: Double,
    now: Int64,
    cost: Double = 1
  ) -> Double? {
    buckets.withLock { buckets in
      if buckets.count >= limit, buckets[sender] == nil { Self.evict(&buckets, limit, now) }
      var bucket =
        buckets[sender] ?? Bucket(rate: rate, burst: burst, tokens: burst, filled: now)
      bucket.rate = rate
      bucket.burst = burst
      bucket.fill(now: now)
      defer { buckets[sender] = bucket }
      guard bucket.tokens < cost else {
        bucket.tokens -= cost
        return nil
      }
      return max((cost - bucket.tokens) / rate, 0.001)
    }
  }

  /// The tokens in the sender's bucket; a bucket that owes some has none.
  func tokens(of sender: String, burst: Double, now: Int64) -> Double {
    buckets.withLock { buckets in
      guard var bucket = buckets[sender] else { return burst }
      bucket.fill(now: now)
      return max(0, bucket.tokens)
    }
  }

  /// Takes tokens for what was used already; a bucket may owe some, and has none until it has paid.
  func spend(_ cost: Double, for sender: String, rate: Double, burst: Double, now: Int64) {
    buckets.withLock { buckets in
      if buckets.count >= limit, buckets[sender] == nil { Self.evict(&buckets, limit, now) }
      var bucket =
        buckets[sender] ?? Bucket(rate: rate, burst: burst, tokens: burst, filled: now)
      bucket.fill(now: now)
      bucket.tokens -= cost
      buckets[sender] = bucket
    }
  }

  /// Forgets full buckets, which lose nothing, and beyond them those that were used longest ago.
  ///
  /// An evicted sender has a full bucket again, so an active sender must be kept regardless of the
  /// number of others. A tenth is evicted at a time, so that the scan is rare.
  private static func evict(_ buckets: inout [String: Bucket], _ limit: Int, _ now: Int64) {
    buckets = buckets.filter { _, bucket in
      var bucket = bucket
      bucket.fill(now: now)
      return bucket.tokens < bucket.burst
    }
    let excess = buckets.count - (limit - max(1, limit / 10))
    guard excess > 0 else { return }
    for (sender, _) in buckets.sorted(by: { $0.value.filled < $1.value.filled }).prefix(excess) {
      buckets[sender] = nil
    }
  }
}
