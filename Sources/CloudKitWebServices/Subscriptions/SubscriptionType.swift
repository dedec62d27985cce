/// What a subscription watches.
package enum SubscriptionType: String, Codable, Hashable, Sendable, CaseIterable {
  case query
  case zone
  case database
}
