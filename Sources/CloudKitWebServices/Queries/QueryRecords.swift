import Foundation

/// The body of `records/query`.
package struct QueryRecordsRequest: Codable, Hashable, Sendable {
  package var query: RecordQuery
  package var zoneID: ZoneID?
  /// Searches all zones of the database; ignored if a zone is given.
  package var zoneWide: Bool?
  package var resultsLimit: Int?
  package var continuationMarker: String?
  package var desiredKeys: [String]?
  package var numbersAsStrings: Bool?

  package init(
    query: RecordQuery,
    zoneID: ZoneID? = nil,
    zoneWide: Bool? = nil,
    resultsLimit: Int? = nil,
    continuationMarker: String? = nil,
    desiredKeys: [String]? = nil,
    numbersAsStrings: Bool? = nil
  ) {
    self.query = query
    self.zoneID = zoneID
    self.zoneWide = zoneWide
    self.resultsLimit = resultsLimit
    self.continuationMarker = continuationMarker
    self.desiredKeys = desiredKeys
    self.numbersAsStrings = numbersAsStrings
  }

  /// The request with its zone in one place.
  package var placed: QueryRecordsRequest {
    var request = self
    if zoneID == nil, zoneWide != true { request.zoneID = query.zoneID }
    request.query.zoneID = nil
    return request
  }
}

/// The reply of `records/query`.
package struct QueryRecordsResponse: Codable, Hashable, Sendable {
  package var records: [ItemResult<RecordDictionary>]
  /// Present only if more results exist.
  package var continuationMarker: String?
  package var syncToken: String?

  package init(
    records: [ItemResult<RecordDictionary>],
    continuationMarker: String? = nil,
    syncToken: String? = nil
  ) {
    self.records = records
    self.continuationMarker = continuationMarker
    self.syncToken = syncToken
  }
}
