import Foundation

/// One operation of `subscriptions/modify`.
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

  private enum CodingKeys: String, CodingKey { case subscriptions }

  /// Only the ID of a subscription is used here, and some clients write nothing else.
  private struct Entry: Decodable {
    var subscriptionID: String?

    private enum CodingKeys: String, CodingKey { case subscriptionID }

    init(from decoder: any Decoder) throws {
      if let text = try? decoder.singleValueContainer().decode(String.self) {
        subscriptionID = text
      } else {
        subscriptionID = try decoder.container(keyedBy: CodingKeys.self)
          .decodeIfPresent(String.self, forKey: .subscriptionID)
      }
    }
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    subscriptions = try container.decode([Entry].self, forKey: .subscriptions).map {
      Subscription(subscriptionID: $0.subscriptionID)
    }
  }
}

/// The reply of the `subscriptions` endpoints.
package struct SubscriptionsResponse: Codable, Hashable, Sendable {
  package var subscriptions: [ItemResult<Subscription>]

  package init(
    subscriptions: [ItemResult<Subscription>]
  ) {
    self.subscriptions = subscriptions
  }
}
