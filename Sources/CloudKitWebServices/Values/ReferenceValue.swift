import Foundation

/// A reference from one record to another.
package struct ReferenceValue: Codable, Hashable, Sendable {
  package var recordName: String
  /// Absent: the zone of the record that holds the reference.
  package var zoneID: ZoneID?
  /// Required when a record is saved, ignored in filters.
  package var action: ReferenceAction?

  package init(
    recordName: String,
    zoneID: ZoneID? = nil,
    action: ReferenceAction? = nil
  ) {
    self.recordName = recordName
    self.zoneID = zoneID
    self.action = action
  }
}
