import Foundation

/// The parent of a record, for sharing.
package struct ParentDictionary: Codable, Hashable, Sendable {
  package var recordName: String
  package var zoneID: ZoneID?

  package init(
    recordName: String,
    zoneID: ZoneID? = nil
  ) {
    self.recordName = recordName
    self.zoneID = zoneID
  }
}
