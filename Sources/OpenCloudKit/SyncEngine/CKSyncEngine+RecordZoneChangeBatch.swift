extension CKSyncEngine {
  /// The records to save and delete in one batch.
  public struct RecordZoneChangeBatch: Sendable {
    /// The records to save.
    public var recordsToSave: [CKRecord]
    /// The records to delete.
    public var recordIDsToDelete: [CKRecord.ID]
    /// Whether the changes of each zone are atomic.
    public var atomicByZone: Bool

    /// The most changes of a batch that is created from pending changes: the limit of one request.
    static let changeLimit = RecordModification.operationLimit
    /// The approximate limit of such a batch in bytes, without assets: twice the largest record.
    static let byteLimit = 2 << 20

    /// Creates a batch.
    public init(
      recordsToSave: [CKRecord] = [],
      recordIDsToDelete: [CKRecord.ID] = [],
      atomicByZone: Bool = false
    ) {
      self.recordsToSave = recordsToSave
      self.recordIDsToDelete = recordIDsToDelete
      self.atomicByZone = atomicByZone
    }

    /// Creates a batch of pending changes in their order, up to the limit of one request.
    ///
    /// A record that the provider does not return is skipped; its change stays pending until it is
    /// removed. Returns nil if no change is left.
    public init?(
      pendingChanges: [CKSyncEngine.PendingRecordZoneChange],
      recordProvider: @Sendable (CKRecord.ID) async -> CKRecord?
    ) async {
      self.init()
      var bytes = 0
      for change in pendingChanges {
        guard count < Self.changeLimit, bytes < Self.byteLimit else { break }
        switch change {
        case .saveRecord(let recordID):
          guard let record = await recordProvider(recordID) else { continue }
          let size = record.fields.values.reduce(0) { $0 + $1.value.byteCount }
          // A record that exceeds the limit on its own is sent alone, so that the service reports
          // the error.
          if bytes > 0, bytes + size > Self.byteLimit { return }
          bytes += size
          recordsToSave.append(record)
        case .deleteRecord(let recordID):
          recordIDsToDelete.append(recordID)
        }
      }
      guard count > 0 else { return nil }
    }

    /// The number of changes in the batch.
    var count: Int { recordsToSave.count + recordIDsToDelete.count }
  }
}

extension CKSyncEngine.RecordZoneChangeBatch: CustomStringConvertible {
  /// A description of the batch for logs: names, no contents.
  public var description: String {
    "recordsToSave=\(SyncEngineText.records(recordsToSave.map(\.recordID))), "
      + "recordIDsToDelete=\(SyncEngineText.records(recordIDsToDelete)), "
      + "atomicByZone=\(atomicByZone)"
  }
}
