import Foundation

/// Fetches which records of one zone changed.
@available(*, deprecated, renamed: "CKFetchRecordZoneChangesOperation")
public final class CKFetchRecordChangesOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The zone.
  public var recordZoneID: CKRecordZone.ID?
  /// The change token to fetch changes after; nil fetches from the beginning.
  public var previousServerChangeToken: CKServerChangeToken?
  /// The most records, or zero.
  public var resultsLimit = 0
  /// The keys to fetch, or nil for all.
  public var desiredKeys: [String]?
  /// Called with each record that changed.
  public var recordChangedBlock: ((CKRecord) -> Void)?
  /// Called with each deleted record.
  public var recordWithIDWasDeletedBlock: ((CKRecord.ID) -> Void)?
  /// Called at the end, with the new change token.
  ///
  /// If records or their files could not be read, the error is a `partialFailure` with the error of
  /// each. The token is the previous one if a later fetch may read them, and the new one if the files
  /// are missing: fetch these records again on their own.
  public var fetchRecordChangesCompletionBlock:
    ((CKServerChangeToken?, Data?, (any Error)?) -> Void)?
  /// Whether there is more to fetch, once the operation has ended.
  public private(set) var moreComing = false

  /// Creates an empty operation.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(
    recordZoneID: CKRecordZone.ID,
    previousServerChangeToken: CKServerChangeToken?
  ) {
    self.init()
    self.recordZoneID = recordZoneID
    self.previousServerChangeToken = previousServerChangeToken
  }

  override func run() async {
    do {
      try checkCancellation()
      let page = try await target.changes(
        inZone: recordZoneID ?? .default,
        since: previousServerChangeToken,
        desiredKeys: desiredKeys,
        resultsLimit: resultsLimit > 0 ? resultsLimit : nil
      )
      for record in page.records where page.failures[record.recordID] == nil {
        recordChangedBlock?(record)
      }
      for tombstone in page.deletions { recordWithIDWasDeletedBlock?(tombstone.recordID) }
      // There is no block for failures: a new token would hide the records from the app.
      let error = page.failures.isEmpty ? nil : CKError.partialFailure(page.failures)
      guard !page.mayBeReadLater else {
        fetchRecordChangesCompletionBlock?(previousServerChangeToken, nil, error)
        return
      }
      moreComing = page.moreComing
      fetchRecordChangesCompletionBlock?(page.changeToken, nil, error)
    } catch {
      fetchRecordChangesCompletionBlock?(nil, nil, error)
    }
  }
}
