import CloudKitWebServices
import Foundation
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

extension CloudKitService {
  /// Throws for a request of a user or a network over the rate.
  func throttle(_ context: RequestContext, _ request: WebServiceRequest) throws {
    guard let principal = context.principal else { return try throttleAddress(request) }
    guard let rate = limits.requestsPerSecond, rate > 0 else { return }
    let seconds = requests.delay(
      for: "user \(principal.account)",
      rate: rate,
      burst: limits.requestBurst,
      now: now
    )
    if let seconds { throw Self.tooMany("requests, slow down", seconds) }
  }

  /// Throws for an address that requests pages and account endpoints over the rate, before the
  /// request's body is read or anything is looked up.
  func throttleAddress(_ request: WebServiceRequest) throws {
    guard let rate = limits.requestsPerSecond, rate > 0 else { return }
    let seconds = delay("address", of: request, rate: rate, burst: limits.requestBurst)
    if let seconds { throw Self.tooMany("requests, slow down", seconds) }
  }

  /// Seconds that the sender of a request has to wait, by its network and by its site.
  ///
  /// One customer may have all networks of a site, so these share what a few networks may send.
  private func delay(
    _ kind: String,
    of request: WebServiceRequest,
    rate: Double,
    burst: Double
  ) -> Double? {
    let sender = SenderAddress(request.clientAddress)
    let own = requests.delay(
      for: "\(kind) \(sender?.network ?? "")",
      rate: rate,
      burst: burst,
      now: now
    )
    guard own == nil, let sender, sender.isPartOfSite else { return own }
    return requests.delay(
      for: "\(kind) site \(sender.site)",
      rate: rate * limits.networksPerSite,
      burst: burst * limits.networksPerSite,
      now: now
    )
  }

  private static func tooMany(_ what: String, _ seconds: Double) -> ErrorDictionary {
    ErrorDictionary(.throttled, "too many \(what)", retryAfter: seconds)
  }

  /// Counts an invalid token, key or sealed URL against the sender's network, together with the
  /// network's other requests without a user; over the rate it is refused as throttled.
  ///
  /// Requests with valid credentials are not limited by those of their network.
  func countingFailures<Result>(
    of request: WebServiceRequest,
    _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await body()
    } catch let error as ErrorDictionary
      where [.authenticationFailed, .accessDenied, .notFound].contains(error.serverErrorCode)
    {
      try throttleAddress(request)
      throw error
    }
  }

  /// Throws for a user who looks up more people than an address book has.
  func throttleLookups(of count: Int, _ user: Principal) throws {
    let perHour = Double(limits.peopleLookedUpPerHour)
    if let seconds = requests.delay(
      for: "people \(user.account)",
      rate: perHour / 3600,
      burst: perHour,
      now: now,
      cost: min(Double(count), perHour)
    ) {
      throw ErrorDictionary(.throttled, "too many users were looked up", retryAfter: seconds)
    }
  }

  /// Throws for a user who has added more index entries and references than they may so far.
  ///
  /// A program with a server-to-server key is the operator's, and has no limit.
  func throttleLinkedRows(_ context: RequestContext) throws {
    guard let user = context.principal, context.signature == nil else { return }
    let seconds = requests.delay(
      for: "rows \(user.account)",
      rate: limits.linkedRowsPerSecond,
      burst: limits.linkedRowBurst,
      now: now
    )
    if let seconds {
      throw Self.tooMany("values and words were indexed, slow down", seconds)
    }
  }

  /// Counts index entries and references that a user has added.
  func countLinkedRows(_ count: Int, _ context: RequestContext) {
    guard count > 0, let user = context.principal, context.signature == nil else { return }
    requests.spend(
      Double(count),
      for: "rows \(user.account)",
      rate: limits.linkedRowsPerSecond,
      burst: limits.linkedRowBurst,
      now: now
    )
  }

  /// Throws for an address that creates accounts or guesses links in quantity: ten, then one a
  /// minute.
  func throttleAnonymous(_ request: WebServiceRequest) throws {
    let seconds = delay("stranger", of: request, rate: 1.0 / 60, burst: 10)
    if let seconds { throw Self.tooMany("attempts from this address", seconds) }
  }
}
