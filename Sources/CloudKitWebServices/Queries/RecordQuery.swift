import Foundation

/// A query: a record type, filters that must all match, and sort keys.
package struct RecordQuery: Codable, Hashable, Sendable {
  package var recordType: String?
  package var filterBy: [QueryFilter]?
  package var sortBy: [QuerySort]?

  package init(
    recordType: String? = nil,
    filterBy: [QueryFilter]? = nil,
    sortBy: [QuerySort]? = nil
  ) {
    self.recordType = recordType
    self.filterBy = filterBy
    self.sortBy = sortBy
  }

  private enum CodingKeys: String, CodingKey { case recordType, filterBy, sortBy }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    recordType = try container.decodeIfPresent(String.self, forKey: .recordType)
    filterBy = try container.decodeIfPresent(OneOrMany<QueryFilter>.self, forKey: .filterBy)?.items
    sortBy = try container.decodeIfPresent(OneOrMany<QuerySort>.self, forKey: .sortBy)?.items
  }
}
