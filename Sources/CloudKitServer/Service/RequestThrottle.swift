import CloudKitWebServices
import Foundation
import Synchronization

/// Counts requests, a bucket of tokens for each sender: it fills at the rate and holds one burst.
final class RequestThrottle: Sendable {
  private struct Bucket {
    var rate: Double
    var burst: Double
    var tokens: Double
    /// Milliseconds since 1970.
    var filled: Int64

    /// Adds the tokens of the time that has passed.
    mutating func fill(now: Int64) {
      let passed = max(0, Double(now - filled) / 1000)
      tokens = min(burst, tokens + passed * rate)
      filled = now
    }
  }

  /// Bounds the memory.
  private let limit: Int
  private let buckets = Mutex<[String: Bucket]>([:])

  init(limit: Int = 100_000) { self.limit = limit }

  /// Takes tokens of the sender's bucket; seconds to wait where it has fewer.
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
  /// A sender that is forgotten has a full bucket again, so one that keeps sending must stay known
  /// however many others come. A tenth goes at a time: the walk is then rare.
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
  /// Refuses a request of a user or a network that sent too many.
  func throttle(_ context: RequestContext, _ request: WebServiceRequest) throws {
    guard let principal = context.principal else { return try throttleAddress(request) }
    guard let rate = limits.requestsPerSecond, rate > 0 else { return }
    let seconds = requests.delay(
      for: "user \(principal.userRecordName)",
      rate: rate,
      burst: limits.requestBurst,
      now: now
    )
    if let seconds { throw Self.tooMany("requests, slow down", seconds) }
  }

  /// Refuses an address that calls pages and account endpoints too often, before anything is read
  /// of the request's body or looked up.
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

  /// Counts a token, a key or a sealed URL that opens nothing against the network that sent it, with
  /// the network's other requests without a person; beyond the rate it is refused as throttled.
  ///
  /// What opens something is not held up by what else its network sends.
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

  /// Refuses a person who looks up more people than an address book has.
  func throttleLookups(of count: Int, _ user: Principal) throws {
    let perHour = Double(limits.peopleLookedUpPerHour)
    if let seconds = requests.delay(
      for: "people \(user.userRecordName)",
      rate: perHour / 3600,
      burst: perHour,
      now: now,
      cost: min(Double(count), perHour)
    ) {
      throw ErrorDictionary(.throttled, "too many people were looked up", retryAfter: seconds)
    }
  }

  /// Refuses an address that makes accounts or guesses links in quantity: ten, then one a minute.
  func throttleStrangers(_ request: WebServiceRequest) throws {
    let seconds = delay("stranger", of: request, rate: 1.0 / 60, burst: 10)
    if let seconds { throw Self.tooMany("attempts from this address", seconds) }
  }
}
