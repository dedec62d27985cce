import Foundation

/// The body of `records/modify`.
package struct ModifyRecordsRequest: Codable, Hashable, Sendable {
  package var operations: [RecordOperation]
  package var zoneID: ZoneID?
  /// Absent means true in a custom zone; a default zone has no atomic batches.
  package var atomic: Bool?
  package var desiredKeys: [String]?
  package var numbersAsStrings: Bool?
  /// An extension; ignored without the capability header.
  package var clientSequence: ClientSequence?

  package init(
    operations: [RecordOperation],
    zoneID: ZoneID? = nil,
    atomic: Bool? = nil,
    desiredKeys: [String]? = nil,
    numbersAsStrings: Bool? = nil,
    clientSequence: ClientSequence? = nil
  ) {
    self.operations = operations
    self.zoneID = zoneID
    self.atomic = atomic
    self.desiredKeys = desiredKeys
    self.numbersAsStrings = numbersAsStrings
    self.clientSequence = clientSequence
  }
}

/// The reply of `records/modify` and `records/lookup`, one item per item of the request.
package struct RecordsResponse: Codable, Hashable, Sendable {
  package var records: [ItemResult<RecordDictionary>]
  /// Present only with `getCurrentSyncToken=true`.
  package var syncToken: String?

  package init(
    records: [ItemResult<RecordDictionary>],
    syncToken: String? = nil
  ) {
    self.records = records
    self.syncToken = syncToken
  }
}
