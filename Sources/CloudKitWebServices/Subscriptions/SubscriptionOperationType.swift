/// What `subscriptions/modify` can do with a subscription.
package enum SubscriptionOperationType: String, Codable, Hashable, Sendable, CaseIterable {
  case create
  case update
  case delete
}
