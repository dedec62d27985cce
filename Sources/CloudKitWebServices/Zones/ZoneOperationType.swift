/// The operation types of `zones/modify`.
package enum ZoneOperationType: String, Codable, Hashable, Sendable, CaseIterable {
  case create
  case delete
}
