/// What an app does for its sync engine: keeps what was fetched, and gives what is to be sent.
///
/// The calls come one after another: the next one waits until the one before has returned. An engine
/// holds its delegate weakly, as CloudKit's does.
public protocol CKSyncEngineDelegate: AnyObject, Sendable {
  /// Called with each thing that happens.
  ///
  /// Keep what the event brings before you return: the engine asks the service for it only once.
  func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) async

  /// Called for the records to save and delete next, until the answer is nothing.
  func nextRecordZoneChangeBatch(
    _ context: CKSyncEngine.SendChangesContext,
    syncEngine: CKSyncEngine
  ) async -> CKSyncEngine.RecordZoneChangeBatch?

  /// Called between the requests of a fetch for what to fetch, and what first.
  func nextFetchChangesOptions(
    _ context: CKSyncEngine.FetchChangesContext,
    syncEngine: CKSyncEngine
  ) async -> CKSyncEngine.FetchChangesOptions
}

extension CKSyncEngineDelegate {
  /// The options that the fetch began with.
  public func nextFetchChangesOptions(
    _ context: CKSyncEngine.FetchChangesContext,
    syncEngine: CKSyncEngine
  ) async -> CKSyncEngine.FetchChangesOptions {
    context.options
  }
}
