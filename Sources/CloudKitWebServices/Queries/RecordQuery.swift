import Foundation

/// A query: a record type, filters that must all match, and sort keys.
package struct RecordQuery: Codable, Hashable, Sendable {
  package var recordType: String?
  package var filterBy: [QueryFilter]?
  package var sortBy: [QuerySort]?
  /// The zone, from apps of CloudKit JS that name it here; `records/query` reads it if the request
  /// names none.
  package var zoneID: ZoneID?

  package init(
    recordType: String? = nil,
    filterBy: [QueryFilter]? = nil,
    sortBy: [QuerySort]? = nil,
    zoneID: ZoneID? = nil
  ) {
    self.recordType = recordType
    self.filterBy = filterBy
    self.sortBy = sortBy
    self.zoneID = zoneID
  }

  private enum CodingKeys: String, CodingKey { case recordType, filterBy, sortBy, zoneID }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    recordType = try container.decodeIfPresent(String.self, forKey: .recordType)
    filterBy = try container.decodeIfPresent(OneOrMany<QueryFilter>.self, forKey: .filterBy)?.items
    sortBy = try container.decodeIfPresent(OneOrMany<QuerySort>.self, forKey: .sortBy)?.items
    zoneID = try container.decodeIfPresent(ZoneID.self, forKey: .zoneID)
  }
}
