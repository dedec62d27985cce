import CloudKitWebServices

/// The query subscriptions that one save tests: each compiled once, and with a limited number of tests.
///
/// A test is one filter with one record, or one subscription without a filter. Where the limit leaves some out, these are
/// the subscriptions of the users with the most filters.
struct SubscriptionScan {
  struct Listener {
    let owned: OwnedSubscription
    let matcher: SubscriptionMatcher

    /// Identifies the subscription among those of all users.
    var key: String { "\(owned.user)/\(owned.subscription.id)" }
  }

  private var byType: [String: [Listener]] = [:]
  /// The users whose subscriptions are not tested: their devices fetch all changes.
  private(set) var untested: [String] = []

  /// `matcher` compiles a subscription; one that cannot be read or no longer fits the schema has none, and does not fire.
  init(
    _ subscriptions: [OwnedSubscription],
    events: [RecordEvent],
    mostTests: Int,
    matcher: (OwnedSubscription) -> SubscriptionMatcher?
  ) {
    var counts: [String: [PushNotification.Reason: Int]] = [:]
    for event in events { counts[event.type, default: [:]][event.reason, default: 0] += 1 }
    var listeners: [Listener] = []
    var costs: [String: Int] = [:]
    for owned in subscriptions {
      guard let events = counts[owned.subscription.recordType], let matcher = matcher(owned) else {
        continue
      }
      listeners.append(Listener(owned: owned, matcher: matcher))
      costs[owned.user, default: 0] += matcher.tests(of: events)
    }
    untested = Self.over(mostTests, costs)
    let left = Set(untested)
    for listener in listeners where !left.contains(listener.owned.user) {
      byType[listener.owned.subscription.recordType, default: []].append(listener)
    }
  }

  func listeners(to type: String) -> [Listener] { byType[type] ?? [] }

  /// The users that exceed a limit if users are admitted in the order of their costs, the lowest first.
  private static func over(_ limit: Int, _ costs: [String: Int]) -> [String] {
    guard costs.values.reduce(0, +) > limit else { return [] }
    var left = limit
    return costs.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.compactMap { user, cost in
      left -= cost
      return left < 0 ? user : nil
    }
  }
}
