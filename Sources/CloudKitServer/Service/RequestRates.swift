import CloudKitWebServices
import Effects
import Foundation

/// The rates at which users, networks and sites may send requests and use the server's resources.
final class RequestRates: Sendable {
  let throttle = RequestThrottle()
  private let limits: ServiceLimits
  private let effects: Effects

  init(_ limits: ServiceLimits, _ effects: Effects) {
    self.limits = limits
    self.effects = effects
  }

  /// Milliseconds since 1970.
  private var now: Int64 { effects.now.wireMilliseconds }

  /// Throws for a request of a user or a network over the rate.
  func check(_ context: RequestContext, _ request: WebServiceRequest) throws {
    guard let principal = context.principal else { return try checkRate(ofSender: request) }
    guard let rate = limits.requestsPerSecond, rate > 0 else { return }
    let seconds = throttle.delay(
      for: "user \(principal.account)",
      rate: rate,
      burst: limits.requestBurst,
      now: now
    )
    if let seconds { throw Self.tooMany("requests, slow down", seconds) }
  }

  /// Counts items of a request as requests of their own: each takes a turn of the writers.
  func countRequests(_ count: Int, _ context: RequestContext) {
    guard count > 0, let principal = context.principal,
      let rate = limits.requestsPerSecond, rate > 0
    else { return }
    throttle.spend(
      Double(count),
      for: "user \(principal.account)",
      rate: rate,
      burst: limits.requestBurst,
      now: now
    )
  }

  /// Throws for an address that requests pages and account endpoints over the rate, before the
  /// request's body is read or anything is looked up.
  func checkRate(ofSender request: WebServiceRequest) throws {
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
    let own = throttle.delay(
      for: "\(kind) \(sender?.network ?? "")",
      rate: rate,
      burst: burst,
      now: now
    )
    guard own == nil, let sender, sender.isPartOfSite else { return own }
    return throttle.delay(
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
      try checkRate(ofSender: request)
      throw error
    }
  }

  /// Throws for an address that uses URLs which are rights in themselves over the rate: downloads,
  /// uploads and long polls.
  ///
  /// They name no user, and many users with many files each share one address: it is the rate of a
  /// whole site.
  func checkRate(ofCapability request: WebServiceRequest) throws {
    guard let rate = limits.requestsPerSecond, rate > 0 else { return }
    let seconds = delay(
      "capability",
      of: request,
      rate: rate * limits.networksPerSite,
      burst: limits.requestBurst * limits.networksPerSite
    )
    if let seconds { throw Self.tooMany("requests, slow down", seconds) }
  }

  /// Throws for a user who looks up more users than an address book has.
  func checkLookups(of count: Int, _ user: Principal) throws {
    let perHour = Double(limits.peopleLookedUpPerHour)
    if let seconds = throttle.delay(
      for: "look-ups \(user.account)",
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
  func checkLinkedRows(_ context: RequestContext) throws {
    guard let user = context.caller.limitedUser else { return }
    let seconds = throttle.delay(
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
    guard count > 0, let user = context.caller.limitedUser else { return }
    throttle.spend(
      Double(count),
      for: "rows \(user.account)",
      rate: limits.linkedRowsPerSecond,
      burst: limits.linkedRowBurst,
      now: now
    )
  }

  /// The bytes of notifications that the next save of a user may cause.
  ///
  /// A program with a server-to-server key is the operator's, and has no limit.
  func notificationBytes(_ context: RequestContext) -> Int {
    guard let user = context.caller.limitedUser else { return .max }
    let burst = limits.notificationBurst
    return Int(throttle.tokens(of: "notifications \(user.account)", burst: burst, now: now))
  }

  /// Counts the notifications that a user's save has caused.
  func countNotifications(bytes: Int, _ context: RequestContext) {
    guard bytes > 0, let user = context.caller.limitedUser else { return }
    throttle.spend(
      Double(bytes),
      for: "notifications \(user.account)",
      rate: limits.notificationBytesPerSecond,
      burst: limits.notificationBurst,
      now: now
    )
  }

  /// Throws for an address that creates accounts or guesses links in quantity: ten, then one a
  /// minute.
  func checkAnonymous(_ request: WebServiceRequest) throws {
    let seconds = delay("stranger", of: request, rate: 1.0 / 60, burst: 10)
    if let seconds { throw Self.tooMany("attempts from this address", seconds) }
  }
}
