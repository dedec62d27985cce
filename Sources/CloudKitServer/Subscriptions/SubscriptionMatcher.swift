import CloudKitWebServices
import Foundation
import Synchronization

/// Whether a query subscription fires.
struct SubscriptionMatcher: Sendable {
  let subscription: Subscription
  private let user: String
  private let conditions: [QueryCondition]
  private let reasons: Set<String>

  var filterCount: Int { conditions.count }

  /// Nil where the query does not fit the type.
  init?(
    _ subscription: Subscription,
    _ type: RecordTypeSchema,
    user: String,
    _ context: RequestContext
  ) {
    guard let query = subscription.query, query.recordType == type.name,
      let plan = try? QueryPlan(
        RecordQuery(recordType: type.name, filterBy: query.filterBy),
        type,
        container: context.container,
        user: user,
        allowsUnindexed: true
      )
    else { return nil }
    self.subscription = subscription
    self.user = user
    conditions = plan.conditions
    reasons = Set((subscription.firesOn ?? ["create", "update", "delete"]).map { $0.lowercased() })
  }

  /// The number of tests for the given number of events of each kind.
  func tests(of events: [PushNotification.Reason: Int]) -> Int {
    events.reduce(0) { sum, event in
      sum + event.value * (reasons.contains(event.key.name) ? max(1, filterCount) : 1)
    }
  }

  /// The fields that the payload may show, or nil where it does not fire.
  ///
  /// A creation is matched by its new values, a deletion by its old ones, an update by either: a
  /// client that keeps a list of the matching records is notified of records that leave it too.
  func match(_ event: inout RecordEvent, _ everyone: RecordAccess) -> [String: FieldValue]? {
    guard reasons.contains(event.reason.name) else { return nil }
    if let zone = subscription.zoneID {
      guard zone.zoneName == event.zoneName else { return nil }
    } else if subscription.zoneWide == false, event.zoneName != ZoneID.defaultZoneName {
      return nil
    }
    var access = everyone
    access.user = user
    return event.firstFields { state in
      let record = state.record
      return access.allows(.read, type: record.type, creator: .of(record))
        && conditions.allSatisfy { $0.holds(for: &state) }
    }
  }
}

/// Matchers of subscriptions that were used recently, so that a save does not read and plan each of
/// thousands again.
///
/// They are in two generations: when the newer one is full, it becomes the older one, of which
/// those that are used return to the newer. A generation holds all subscriptions that one save
/// reads.
final class SubscriptionMatchers: Sendable {
  private struct Key: Hashable {
    var container: String
    var environment: ContainerEnvironment
    var scope: DatabaseScope
    var user: String
    var id: String
  }

  private struct Entry {
    /// The subscription and the type that it was compiled from; it is compiled again if either
    /// changed.
    var body: Data
    var type: RecordTypeSchema
    /// Nil: the subscription fires for nothing.
    var matcher: SubscriptionMatcher?

    var size: Int { body.count + SubscriptionMatchers.entrySize }
  }

  private struct State {
    var newer: [Key: Entry] = [:]
    var older: [Key: Entry] = [:]
    /// Bytes of the newer generation.
    var bytes = 0
    var compilations = 0

    mutating func entry(_ key: Key, limit: Int) -> Entry? {
      if let entry = newer[key] { return entry }
      guard let entry = older[key] else { return nil }
      keep(entry, key, limit: limit)
      return entry
    }

    mutating func keep(_ entry: Entry, _ key: Key, limit: Int) {
      if let old = newer.removeValue(forKey: key) { bytes -= old.size }
      if bytes + entry.size > limit {
        older = newer
        newer = [:]
        bytes = 0
      }
      older[key] = nil
      newer[key] = entry
      bytes += entry.size
    }
  }

  /// What an entry has besides the bytes of its subscription.
  static let entrySize = 512

  /// The bytes of a generation, which a matcher has about as many of.
  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int = 16 * 1_048_576) { self.limit = limit }

  /// How often a subscription was compiled.
  var compilations: Int { state.withLock { $0.compilations } }

  func matcher(
    of owned: OwnedSubscription,
    _ type: RecordTypeSchema,
    _ context: RequestContext
  ) -> SubscriptionMatcher? {
    let key = Key(
      container: context.container,
      environment: context.environment,
      scope: context.scope,
      user: owned.user,
      id: owned.subscription.id
    )
    let body = owned.subscription.body
    let known = state.withLock { $0.entry(key, limit: limit) }
    if let known, known.body == body, known.type == type { return known.matcher }
    let matcher = (try? owned.subscription.subscription()).flatMap {
      SubscriptionMatcher($0, type, user: owned.user, context)
    }
    state.withLock { state in
      state.compilations += 1
      state.keep(Entry(body: body, type: type, matcher: matcher), key, limit: limit)
    }
    return matcher
  }
}
