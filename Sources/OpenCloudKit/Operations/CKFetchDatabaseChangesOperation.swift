import Foundation

/// Fetches which zones of a database changed.
public final class CKFetchDatabaseChangesOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The change token to fetch changes after; nil fetches from the beginning.
  public var previousServerChangeToken: CKServerChangeToken?
  /// The most zones at a time, or zero.
  public var resultsLimit: Int = 0
  /// Whether the operation continues until the feed has no more changes.
  public var fetchAllChanges = true
  /// Called with each zone that changed.
  public var recordZoneWithIDChangedBlock: ((CKRecordZone.ID) -> Void)?
  /// Called with each deleted zone.
  public var recordZoneWithIDWasDeletedBlock: ((CKRecordZone.ID) -> Void)?
  /// Called with each zone that was deleted because the user deleted the app's data.
  public var recordZoneWithIDWasPurgedBlock: ((CKRecordZone.ID) -> Void)?
  /// Called with each zone that was deleted because the user reset their encrypted data.
  public var recordZoneWithIDWasDeletedDueToUserEncryptedDataResetBlock:
    ((CKRecordZone.ID) -> Void)?
  /// Called with the new change token after each page.
  public var changeTokenUpdatedBlock: ((CKServerChangeToken) -> Void)?
  /// Called at the end.
  public var fetchDatabaseChangesResultBlock:
    (
      (Result<(serverChangeToken: CKServerChangeToken, moreComing: Bool), any Error>) -> Void
    )?

  /// Called at the end.
  @available(*, deprecated, renamed: "fetchDatabaseChangesResultBlock")
  public var fetchDatabaseChangesCompletionBlock:
    ((CKServerChangeToken?, Bool, (any Error)?) -> Void)?
  {
    get { olderBlock }
    set { olderBlock = newValue }
  }
  private var olderBlock: ((CKServerChangeToken?, Bool, (any Error)?) -> Void)?

  /// Creates an operation that fetches from the beginning of the feed.
  public override init() {
    super.init()
  }

  /// Creates an operation that fetches the changes after a token.
  public convenience init(previousServerChangeToken: CKServerChangeToken?) {
    self.init()
    self.previousServerChangeToken = previousServerChangeToken
  }

  override func run() async {
    var token = previousServerChangeToken
    do {
      while true {
        try checkCancellation()
        let changes = try await target.databaseChanges(
          since: token,
          resultsLimit: resultsLimit > 0 ? resultsLimit : nil
        )
        for zone in changes.modifications { recordZoneWithIDChangedBlock?(zone.zoneID) }
        for zone in changes.deletions { report(zone) }
        token = changes.changeToken
        changeTokenUpdatedBlock?(changes.changeToken)
        guard changes.moreComing, fetchAllChanges else {
          fetchDatabaseChangesResultBlock?(
            .success((serverChangeToken: changes.changeToken, moreComing: changes.moreComing))
          )
          olderBlock?(changes.changeToken, changes.moreComing, nil)
          return
        }
      }
    } catch {
      fetchDatabaseChangesResultBlock?(.failure(error))
      olderBlock?(nil, false, error)
    }
  }

  private func report(_ deletion: CKDatabase.DatabaseChange.Deletion) {
    switch deletion.reason {
    case .deleted: recordZoneWithIDWasDeletedBlock?(deletion.zoneID)
    case .purged: recordZoneWithIDWasPurgedBlock?(deletion.zoneID)
    case .encryptedDataReset:
      recordZoneWithIDWasDeletedDueToUserEncryptedDataResetBlock?(deletion.zoneID)
    }
  }
}
