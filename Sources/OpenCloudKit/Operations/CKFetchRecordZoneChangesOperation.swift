import Foundation

/// Fetches which records of zones changed.
///
/// ```swift
/// let operation = CKFetchRecordZoneChangesOperation(
///   recordZoneIDs: [zoneID],
///   configurationsByRecordZoneID: [zoneID: .init(previousServerChangeToken: token)]
/// )
/// operation.recordWasChangedBlock = { recordID, result in
///   texts[recordID] = try? result.get()["text"]
/// }
/// operation.recordWithIDWasDeletedBlock = { recordID, _ in texts[recordID] = nil }
/// operation.recordZoneChangeTokensUpdatedBlock = { _, newToken, _ in token = newToken }
/// operation.fetchRecordZoneChangesResultBlock = { result in
///   continuation.resume(with: result.map { texts.count })
/// }
/// database.add(operation)
/// ```
public final class CKFetchRecordZoneChangesOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// How the changes of one zone are fetched.
  public final class ZoneConfiguration: NSObject, NSCopying, @unchecked Sendable {
    // Unchecked: set before the operation is queued.

    /// The change token to fetch changes after; nil fetches from the beginning.
    public var previousServerChangeToken: CKServerChangeToken?
    /// The most records at a time, or zero.
    public var resultsLimit: Int
    /// The keys to fetch, or nil for all.
    public var desiredKeys: [CKRecord.FieldKey]?

    /// Creates a configuration.
    public init(
      previousServerChangeToken: CKServerChangeToken? = nil,
      resultsLimit: Int? = nil,
      desiredKeys: [CKRecord.FieldKey]? = nil
    ) {
      self.previousServerChangeToken = previousServerChangeToken
      self.resultsLimit = resultsLimit ?? 0
      self.desiredKeys = desiredKeys
      super.init()
    }

    /// A copy of the configuration with the same contents.
    public func copy(with zone: NSZone? = nil) -> Any {
      ZoneConfiguration(
        previousServerChangeToken: previousServerChangeToken,
        resultsLimit: resultsLimit,
        desiredKeys: desiredKeys
      )
    }
  }

  /// How the changes of one zone are fetched, by an older name.
  @available(*, deprecated, renamed: "ZoneConfiguration")
  public typealias ZoneOptions = ZoneConfiguration

  /// The zones.
  public var recordZoneIDs: [CKRecordZone.ID]?
  /// How the changes of each zone are fetched.
  public var configurationsByRecordZoneID:
    [CKRecordZone.ID: CKFetchRecordZoneChangesOperation.ZoneConfiguration]?
  /// How the changes of each zone are fetched, by an older name.
  @available(*, deprecated, renamed: "configurationsByRecordZoneID")
  public var optionsByRecordZoneID:
    [CKRecordZone.ID: CKFetchRecordZoneChangesOperation.ZoneConfiguration]?
  {
    get { configurationsByRecordZoneID }
    set { configurationsByRecordZoneID = newValue }
  }

  /// Whether the operation continues until the feed has no more changes.
  public var fetchAllChanges = true
  /// Called with each record that changed, or with the error of a record that could not be read.
  public var recordWasChangedBlock: ((CKRecord.ID, Result<CKRecord, any Error>) -> Void)?
  /// Called with each deleted record, and its type.
  public var recordWithIDWasDeletedBlock: ((CKRecord.ID, CKRecord.RecordType) -> Void)?
  /// Called with a zone's new change token after each page.
  public var recordZoneChangeTokensUpdatedBlock:
    ((CKRecordZone.ID, CKServerChangeToken?, Data?) -> Void)?
  /// Called at the end of each zone.
  public var recordZoneFetchResultBlock:
    (
      (
        CKRecordZone.ID,
        Result<
          (
            serverChangeToken: CKServerChangeToken, clientChangeTokenData: Data?,
            moreComing: Bool
          ), any Error
        >
      ) -> Void
    )?
  /// Called at the end.
  public var fetchRecordZoneChangesResultBlock: ((Result<Void, any Error>) -> Void)?

  /// Called with each record that changed.
  ///
  /// Without ``recordWasChangedBlock``, a zone ends with a `partialFailure` and no new token if one of its
  /// records could not be read.
  @available(*, deprecated, renamed: "recordWasChangedBlock")
  public var recordChangedBlock: ((CKRecord) -> Void)? {
    get { olderItemBlock }
    set { olderItemBlock = newValue }
  }
  private var olderItemBlock: ((CKRecord) -> Void)?

  /// Called at the end of each zone.
  @available(*, deprecated, renamed: "recordZoneFetchResultBlock")
  public var recordZoneFetchCompletionBlock:
    ((CKRecordZone.ID, CKServerChangeToken?, Data?, Bool, (any Error)?) -> Void)?
  {
    get { olderZoneBlock }
    set { olderZoneBlock = newValue }
  }
  private var olderZoneBlock:
    ((CKRecordZone.ID, CKServerChangeToken?, Data?, Bool, (any Error)?) -> Void)?

  /// Called at the end.
  @available(*, deprecated, renamed: "fetchRecordZoneChangesResultBlock")
  public var fetchRecordZoneChangesCompletionBlock: (((any Error)?) -> Void)? {
    get { olderBlock }
    set { olderBlock = newValue }
  }
  private var olderBlock: (((any Error)?) -> Void)?

  /// Creates an empty operation.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(
    recordZoneIDs: [CKRecordZone.ID]? = nil,
    configurationsByRecordZoneID: [CKRecordZone.ID:
      CKFetchRecordZoneChangesOperation.ZoneConfiguration]? = nil
  ) {
    self.init()
    self.recordZoneIDs = recordZoneIDs
    self.configurationsByRecordZoneID = configurationsByRecordZoneID
  }

  /// Creates an operation.
  @available(*, deprecated, renamed: "init(recordZoneIDs:configurationsByRecordZoneID:)")
  public convenience init(
    recordZoneIDs: [CKRecordZone.ID],
    optionsByRecordZoneID: [CKRecordZone.ID:
      CKFetchRecordZoneChangesOperation.ZoneConfiguration]?
  ) {
    self.init(
      recordZoneIDs: recordZoneIDs,
      configurationsByRecordZoneID: optionsByRecordZoneID
    )
  }

  override func run() async {
    var errors: [AnyHashable: any Error] = [:]
    /// An error that every other zone would also meet: the service is unreachable, or the operation
    /// is cancelled.
    var abort: CKError?
    let zoneIDs = recordZoneIDs ?? configurationsByRecordZoneID.map { Array($0.keys) } ?? []
    for zoneID in zoneIDs {
      do {
        if let abort { throw abort }
        try checkCancellation()
        if let error = try await fetch(zoneID) { errors[zoneID] = error }
      } catch {
        let reason = CKError(transport: error)
        if reason.isTransient || reason.code == .operationCancelled { abort = reason }
        errors[zoneID] = error
        recordZoneFetchResultBlock?(zoneID, .failure(error))
        olderZoneBlock?(zoneID, nil, nil, false, error)
      }
    }
    let outcome: Result<Void, any Error> = abort.map { .failure($0) } ?? Self.result(errors)
    fetchRecordZoneChangesResultBlock?(outcome)
    olderBlock?(outcome.error)
  }

  /// Fetches a zone's changes; returns the errors that only the deprecated blocks need.
  private func fetch(_ zoneID: CKRecordZone.ID) async throws -> CKError? {
    let options = configurationsByRecordZoneID?[zoneID]
    var token = options?.previousServerChangeToken
    let limit = options?.resultsLimit ?? 0
    /// The errors of records whose files are missing, for the deprecated blocks.
    var missing: [CKRecord.ID: CKError] = [:]
    while true {
      let page = try await target.changes(
        inZone: zoneID,
        since: token,
        desiredKeys: options?.desiredKeys,
        resultsLimit: limit > 0 ? limit : nil
      )
      for record in page.records {
        let failure = page.failures[record.recordID]
        recordWasChangedBlock?(
          record.recordID,
          failure.map { .failure($0) } ?? .success(record)
        )
        if failure == nil { olderItemBlock?(record) }
      }
      for (recordID, error) in page.failuresOfMissingRecords {
        recordWasChangedBlock?(recordID, .failure(error))
      }
      for tombstone in page.deletions {
        recordWithIDWasDeletedBlock?(tombstone.recordID, tombstone.recordType ?? "")
      }
      if recordWasChangedBlock == nil, olderItemBlock != nil {
        // The deprecated block takes no failures: a new token would hide the records from the app. A
        // file that is missing stays missing, and the former token would read the page for ever.
        if page.mayBeReadLater { throw CKError.partialFailure(page.failures) }
        missing.merge(page.failures) { $1 }
      }
      token = page.changeToken
      guard page.moreComing, fetchAllChanges else {
        recordZoneFetchResultBlock?(
          zoneID,
          .success(
            (
              serverChangeToken: page.changeToken, clientChangeTokenData: nil,
              moreComing: page.moreComing
            )
          )
        )
        let error = missing.isEmpty ? nil : CKError.partialFailure(missing)
        olderZoneBlock?(zoneID, page.changeToken, nil, page.moreComing, error)
        return error
      }
      recordZoneChangeTokensUpdatedBlock?(zoneID, page.changeToken, nil)
    }
  }
}
