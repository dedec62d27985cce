import CloudKitWebServices

/// The triggers of a user's query subscriptions, by the subscriptions' IDs.
///
/// Two subscriptions that fire on the same changes would notify twice of each change. An app that
/// saves its subscription under a new ID at each launch would collect them.
struct SubscriptionTriggers {
  /// The changes that a query subscription fires on; how it notifies is no part of it.
  private struct Trigger: Hashable {
    var recordType: String?
    var filters: [QueryFilter]
    var reasons: Set<String>
    var firesOnce: Bool
    var zoneName: String?
    /// Whether it fires in each zone, for a subscription that names none.
    var isZoneWide: Bool

    init?(_ subscription: Subscription) {
      guard subscription.watched == .query else { return nil }
      recordType = subscription.query?.recordType
      filters = subscription.query?.filterBy ?? []
      reasons = Set((subscription.firesOn ?? []).map { $0.lowercased() })
      firesOnce = subscription.firesOnce ?? false
      zoneName = subscription.zoneID?.zoneName
      isZoneWide = zoneName == nil && subscription.zoneWide != false
    }
  }

  private var triggers: [String: Trigger] = [:]

  init(_ stored: [StoredSubscription]) {
    for stored in stored {
      triggers[stored.id] = (try? stored.subscription()).flatMap(Trigger.init)
    }
  }

  /// The ID of another subscription that fires on the same changes, and that the request does not delete.
  ///
  /// Nil if the stored subscription with this ID fires on the same changes already: earlier servers
  /// accepted duplicates, which may be saved again.
  func duplicate(of subscription: Subscription, id: String, deleting: Set<String>) -> String? {
    guard let trigger = Trigger(subscription), triggers[id] != trigger else { return nil }
    return triggers.filter { !deleting.contains($0.key) && $0.value == trigger }.keys.min()
  }

  /// Notes a saved subscription in place of the earlier one with its ID; nil notes a deletion.
  mutating func note(_ subscription: Subscription?, id: String) {
    triggers[id] = subscription.flatMap(Trigger.init)
  }
}
