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

/// Matchers of subscriptions that were met lately, so that a save does not read and plan each of
/// thousands again.
final class SubscriptionMatchers: Sendable {
  private struct Key: Hashable {
    var container: String
    var environment: ContainerEnvironment
    var scope: DatabaseScope
    var user: String
    var id: String
  }

  private struct Entry {
    /// The subscription and the type that it was compiled from; it is compiled again if either changed.
    var body: Data
    var type: RecordTypeSchema
    /// Nil: the subscription fires for nothing.
    var matcher: SubscriptionMatcher?
  }

  private struct State {
    var entries: [Key: Entry] = [:]
    /// Bytes of the subscriptions, which a matcher has about as many of.
    var bytes = 0
  }

  /// Bounds the memory; what is forgotten is made again.
  private static let limit = 16 * 1_048_576

  private let state = Mutex(State())

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
    let known = state.withLock { $0.entries[key] }
    if let known, known.body == body, known.type == type { return known.matcher }
    let matcher = (try? owned.subscription.subscription()).flatMap {
      SubscriptionMatcher($0, type, user: owned.user, context)
    }
    state.withLock { state in
      let size = body.count + 512
      if state.bytes + size > Self.limit { state = State() }
      state.bytes += size - (state.entries[key].map { $0.body.count + 512 } ?? 0)
      state.entries[key] = Entry(body: body, type: type, matcher: matcher)
    }
    return matcher
  }
}
