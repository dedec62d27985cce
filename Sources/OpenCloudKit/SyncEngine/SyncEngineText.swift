/// The texts for identifiers in the descriptions of a sync engine's values.
enum SyncEngineText {
  static func zone(_ zoneID: CKRecordZone.ID) -> String {
    "\(zoneID.zoneName):\(zoneID.ownerName)"
  }

  static func zones(_ zoneIDs: [CKRecordZone.ID]) -> String {
    "[" + zoneIDs.map(zone).joined(separator: ", ") + "]"
  }

  static func record(_ recordID: CKRecord.ID) -> String {
    "\(recordID.recordName):(\(zone(recordID.zoneID)))"
  }

  static func records(_ recordIDs: [CKRecord.ID]) -> String {
    "[" + recordIDs.map(record).joined(separator: ", ") + "]"
  }
}
