import CloudKitWebServices
import Foundation
import Synchronization

/// Counts requests, a bucket of tokens for each sender: it fills at the rate and holds one burst.
final class RequestThrottle: Sendable {
  private struct Bucket {
    var tokens: Double
    /// Milliseconds since 1970.
    var filled: Int64
  }

  /// Bounds the memory; a sender that is forgotten has a full bucket again.
  private static let limit = 100_000

  private let buckets = Mutex<[String: Bucket]>([:])

  /// Takes a token of the sender's bucket; seconds to wait where it is empty.
  func delay(for sender: String, rate: Double, burst: Double, now: Int64) -> Double? {
    buckets.withLock { buckets in
      if buckets.count >= Self.limit, buckets[sender] == nil {
        buckets = buckets.filter { Double(now - $0.value.filled) / 1000 * rate < burst }
        if buckets.count >= Self.limit { buckets.removeAll() }
      }
      var bucket = buckets[sender] ?? Bucket(tokens: burst, filled: now)
      let passed = max(0, Double(now - bucket.filled) / 1000)
      bucket.tokens = min(burst, bucket.tokens + passed * rate)
      bucket.filled = now
      defer { buckets[sender] = bucket }
      guard bucket.tokens < 1 else {
        bucket.tokens -= 1
        return nil
      }
      return max((1 - bucket.tokens) / rate, 0.001)
    }
  }
}

extension CloudKitService {
  /// Refuses a request of somebody who sent too many.
  func throttle(_ context: RequestContext, _ request: WebServiceRequest) throws {
    guard let rate = limits.requestsPerSecond, rate > 0 else { return }
    let sender =
      context.principal.map { "user \($0.userRecordName)" }
      ?? "address \(SenderAddress(request.clientAddress)?.network ?? "")"
    if let seconds = requests.delay(for: sender, rate: rate, burst: limits.requestBurst, now: now) {
      throw ErrorDictionary(.throttled, "too many requests, slow down", retryAfter: seconds)
    }
  }

  /// Refuses an address that calls pages and account endpoints too often, before anything is read
  /// of the request's body or looked up.
  func throttleAddress(_ request: WebServiceRequest) throws {
    guard let rate = limits.requestsPerSecond, rate > 0 else { return }
    let sender = "address \(SenderAddress(request.clientAddress)?.network ?? "")"
    if let seconds = requests.delay(for: sender, rate: rate, burst: limits.requestBurst, now: now) {
      throw ErrorDictionary(.throttled, "too many requests, slow down", retryAfter: seconds)
    }
  }

  /// Refuses an address that makes accounts or guesses links in quantity: ten, then one a minute.
  func throttleStrangers(_ request: WebServiceRequest) throws {
    let sender = "stranger \(SenderAddress(request.clientAddress)?.network ?? "")"
    if let seconds = requests.delay(for: sender, rate: 1.0 / 60, burst: 10, now: now) {
      throw ErrorDictionary(.throttled, "too many attempts from this address", retryAfter: seconds)
    }
  }
}
