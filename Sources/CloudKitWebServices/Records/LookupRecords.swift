import Foundation

/// The body of `records/lookup`.
package struct LookupRecordsRequest: Codable, Hashable, Sendable {
  package var records: [LookupRecord]
  package var zoneID: ZoneID?
  package var desiredKeys: [String]?
  package var numbersAsStrings: Bool?

  package init(
    records: [LookupRecord],
    zoneID: ZoneID? = nil,
    desiredKeys: [String]? = nil,
    numbersAsStrings: Bool? = nil
  ) {
    self.records = records
    self.zoneID = zoneID
    self.desiredKeys = desiredKeys
    self.numbersAsStrings = numbersAsStrings
  }
}

/// One requested record.
package struct LookupRecord: Codable, Hashable, Sendable {
  package var recordName: String
  package var zoneID: ZoneID?
  package var desiredKeys: [String]?

  package init(
    recordName: String,
    zoneID: ZoneID? = nil,
    desiredKeys: [String]? = nil
  ) {
    self.recordName = recordName
    self.zoneID = zoneID
    self.desiredKeys = desiredKeys
  }
}
