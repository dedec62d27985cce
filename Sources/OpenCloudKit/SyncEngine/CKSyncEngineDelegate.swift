/// The app's side of a sync engine: stores fetched records, and supplies the records to send.
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
