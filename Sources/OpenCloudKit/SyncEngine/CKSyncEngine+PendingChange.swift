extension CKSyncEngine {
  /// A zone to save or delete.
  public enum PendingDatabaseChange: Hashable, Sendable {
    /// A zone to save.
    case saveZone(CKRecordZone)
    /// A zone to delete with all its records.
    case deleteZone(CKRecordZone.ID)

    var zoneID: CKRecordZone.ID {
      switch self {
      case .saveZone(let zone): zone.zoneID
      case .deleteZone(let zoneID): zoneID
      }
    }
  }

  /// A record to save or delete.
  public enum PendingRecordZoneChange: Hashable, Sendable {
    /// A record to save.
    case saveRecord(CKRecord.ID)
    /// A record to delete.
    case deleteRecord(CKRecord.ID)

    var recordID: CKRecord.ID {
      switch self {
      case .saveRecord(let recordID), .deleteRecord(let recordID): recordID
      }
    }
  }
}

extension CKSyncEngine.PendingDatabaseChange: CustomStringConvertible {
  /// The change in words, for logs.
  public var description: String {
    switch self {
    case .saveZone(let zone): "saveZone(\(SyncEngineText.zone(zone.zoneID)))"
    case .deleteZone(let zoneID): "deleteZone(\(SyncEngineText.zone(zoneID)))"
    }
  }
}

extension CKSyncEngine.PendingRecordZoneChange: CustomStringConvertible {
  /// The change in words, for logs.
  public var description: String {
    switch self {
    case .saveRecord(let recordID): "saveRecord(\(SyncEngineText.record(recordID)))"
    case .deleteRecord(let recordID): "deleteRecord(\(SyncEngineText.record(recordID)))"
    }
  }
}
