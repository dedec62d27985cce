/// The kind of changes that a subscription observes.
package enum SubscriptionType: String, Codable, Hashable, Sendable, CaseIterable {
  case query
  case zone
  case database
}
