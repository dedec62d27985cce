/// The app's side of a sync engine: stores fetched records, and supplies the records to send.
///
/// ```swift
/// actor NoteSync: CKSyncEngineDelegate {
///   private(set) var texts: [CKRecord.ID: String] = [:]
///   private(set) var state: CKSyncEngine.State.Serialization?
///
///   func write(_ text: String, to recordID: CKRecord.ID) { texts[recordID] = text }
///
///   func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) {
///     switch event {
///     case .stateUpdate(let update):
///       state = update.stateSerialization  // write it to disk with the texts
///     case .fetchedRecordZoneChanges(let changes):
///       for modification in changes.modifications {
///         texts[modification.record.recordID] = modification.record["text"]
///       }
///       for deletion in changes.deletions { texts[deletion.recordID] = nil }
///     default:
///       break
///     }
///   }
///
///   func nextRecordZoneChangeBatch(
///     _ context: CKSyncEngine.SendChangesContext,
///     syncEngine: CKSyncEngine
///   ) async -> CKSyncEngine.RecordZoneChangeBatch? {
///     let scope = context.options.scope
///     let changes = syncEngine.state.pendingRecordZoneChanges.filter { scope.contains($0) }
///     let texts = texts
///     return await CKSyncEngine.RecordZoneChangeBatch(pendingChanges: changes) { recordID in
///       guard let text = texts[recordID] else { return nil }
///       let record = CKRecord(recordType: "Note", recordID: recordID)
///       record["text"] = text
///       return record
///     }
///   }
/// }
/// ```
///
/// The calls are sequential: each one waits until the previous one has returned. An engine holds
/// its delegate weakly, as CloudKit's does.
public protocol CKSyncEngineDelegate: AnyObject, Sendable {
  /// Called with each event.
  ///
  /// Store the contents of the event before you return: the engine fetches them only once.
  func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) async

  /// Called for the next records to save and delete, until it returns nil.
  func nextRecordZoneChangeBatch(
    _ context: CKSyncEngine.SendChangesContext,
    syncEngine: CKSyncEngine
  ) async -> CKSyncEngine.RecordZoneChangeBatch?

  /// Called between the requests of a fetch for the zones to fetch, and their priority.
  func nextFetchChangesOptions(
    _ context: CKSyncEngine.FetchChangesContext,
    syncEngine: CKSyncEngine
  ) async -> CKSyncEngine.FetchChangesOptions
}

extension CKSyncEngineDelegate {
  /// Returns the options that the fetch began with.
  public func nextFetchChangesOptions(
    _ context: CKSyncEngine.FetchChangesContext,
    syncEngine: CKSyncEngine
  ) async -> CKSyncEngine.FetchChangesOptions {
    context.options
  }
}
