/// What `zones/modify` can do with a zone.
package enum ZoneOperationType: String, Codable, Hashable, Sendable, CaseIterable {
  case create
  case delete
}
