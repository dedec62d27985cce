import Foundation

/// The body of `changes/database` and of the older `zones/changes`.
package struct DatabaseChangesRequest: Codable, Hashable, Sendable {
  package var syncToken: String?
  /// The token's key in older requests.
  package var metaSyncToken: String?
  package var resultsLimit: Int?

  package init(
    syncToken: String? = nil,
    metaSyncToken: String? = nil,
    resultsLimit: Int? = nil
  ) {
    self.syncToken = syncToken
    self.metaSyncToken = metaSyncToken
    self.resultsLimit = resultsLimit
  }
}

/// The reply of `changes/database` and of the older `zones/changes`.
package struct DatabaseChangesResponse: Codable, Hashable, Sendable {
  package var zones: [ItemResult<ZoneDictionary>]
  package var syncToken: String?
  package var metaSyncToken: String?
  package var moreComing: Bool?

  package init(
    zones: [ItemResult<ZoneDictionary>],
    syncToken: String? = nil,
    metaSyncToken: String? = nil,
    moreComing: Bool? = nil
  ) {
    self.zones = zones
    self.syncToken = syncToken
    self.metaSyncToken = metaSyncToken
    self.moreComing = moreComing
  }
}
