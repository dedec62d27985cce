extension CKSyncEngine {
  /// Records to save and delete in one go.
  public struct RecordZoneChangeBatch: Sendable {
    /// The records to save.
    public var recordsToSave: [CKRecord]
    /// The records to delete.
    public var recordIDsToDelete: [CKRecord.ID]
    /// Whether all changes of a zone are made or none.
    public var atomicByZone: Bool

    /// The most changes of a batch that is made of pending changes: what one request takes.
    static let changeLimit = RecordModification.operationLimit
    /// About the most bytes of such a batch, assets apart: twice the largest record.
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

    /// Creates a batch of pending changes in their order, as many as one request takes.
    ///
    /// A record that the provider does not have is passed over; its change stays pending until it
    /// is removed. Nothing comes of it where no change is left.
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
          // One that alone is too large is tried alone: the service says what is wrong with it.
          if bytes > 0, bytes + size > Self.byteLimit { return }
          bytes += size
          recordsToSave.append(record)
        case .deleteRecord(let recordID):
          recordIDsToDelete.append(recordID)
        }
      }
      guard count > 0 else { return nil }
    }

    /// How many changes the batch has.
    var count: Int { recordsToSave.count + recordIDsToDelete.count }
  }
}

extension CKSyncEngine.RecordZoneChangeBatch: CustomStringConvertible {
  /// The batch in words, for logs: names, not contents.
  public var description: String {
    "recordsToSave=\(SyncEngineText.records(recordsToSave.map(\.recordID))), "
      + "recordIDsToDelete=\(SyncEngineText.records(recordIDsToDelete)), "
      + "atomicByZone=\(atomicByZone)"
  }
}
