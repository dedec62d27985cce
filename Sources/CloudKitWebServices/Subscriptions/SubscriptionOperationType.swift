/// The operation types of `subscriptions/modify`.
package enum SubscriptionOperationType: String, Codable, Hashable, Sendable, CaseIterable {
  case create
  case update
  case delete
}
