import Foundation

/// Fetches which zones of a database changed.
public final class CKFetchDatabaseChangesOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The place in the feed to begin after, or nothing for its beginning.
  public var previousServerChangeToken: CKServerChangeToken?
  /// The most zones at a time, or zero.
  public var resultsLimit: Int = 0
  /// Whether the operation goes on until nothing more is coming.
  public var fetchAllChanges = true
  /// Called with each zone that changed.
  public var recordZoneWithIDChangedBlock: ((CKRecordZone.ID) -> Void)?
  /// Called with each zone that is gone.
  public var recordZoneWithIDWasDeletedBlock: ((CKRecordZone.ID) -> Void)?
  /// Called with each zone that is gone because the person deleted the app's data.
  public var recordZoneWithIDWasPurgedBlock: ((CKRecordZone.ID) -> Void)?
  /// Called with each zone that is gone because the person reset their encrypted data.
  public var recordZoneWithIDWasDeletedDueToUserEncryptedDataResetBlock:
    ((CKRecordZone.ID) -> Void)?
  /// Called with the place in the feed after each part of it.
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

  /// Creates an operation that begins at the beginning of the feed.
  public override init() {
    super.init()
  }

  /// Creates an operation that begins after a place in the feed.
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
        for zone in changes.deletions { tell(zone) }
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

  private func tell(_ deletion: CKDatabase.DatabaseChange.Deletion) {
    switch deletion.reason {
    case .deleted: recordZoneWithIDWasDeletedBlock?(deletion.zoneID)
    case .purged: recordZoneWithIDWasPurgedBlock?(deletion.zoneID)
    case .encryptedDataReset:
      recordZoneWithIDWasDeletedDueToUserEncryptedDataResetBlock?(deletion.zoneID)
    }
  }
}
