import Foundation

/// One step of `subscriptions/modify`.
package struct SubscriptionOperation: Codable, Hashable, Sendable {
  package var operationType: SubscriptionOperationType
  package var subscription: Subscription

  package init(
    operationType: SubscriptionOperationType,
    subscription: Subscription
  ) {
    self.operationType = operationType
    self.subscription = subscription
  }
}

/// The body of `subscriptions/modify`.
package struct ModifySubscriptionsRequest: Codable, Hashable, Sendable {
  package var operations: [SubscriptionOperation]

  package init(
    operations: [SubscriptionOperation]
  ) {
    self.operations = operations
  }
}

/// The body of `subscriptions/lookup`.
package struct LookupSubscriptionsRequest: Codable, Hashable, Sendable {
  package var subscriptions: [Subscription]

  package init(
    subscriptions: [Subscription]
  ) {
    self.subscriptions = subscriptions
  }
}

/// The reply of the `subscriptions` verbs.
package struct SubscriptionsResponse: Codable, Hashable, Sendable {
  package var subscriptions: [ItemResult<Subscription>]

  package init(
    subscriptions: [ItemResult<Subscription>]
  ) {
    self.subscriptions = subscriptions
  }
}
