import Foundation

/// Fetches records.
///
/// ```swift
/// let operation = CKFetchRecordsOperation(recordIDs: noteIDs)
/// operation.perRecordResultBlock = { recordID, result in
///   fetched[recordID] = try? result.get()
/// }
/// operation.fetchRecordsResultBlock = { result in
///   continuation.resume(with: result.map { fetched.count })
/// }
/// database.add(operation)
/// ```
public final class CKFetchRecordsOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The records to fetch.
  public var recordIDs: [CKRecord.ID]?
  /// The keys to fetch, or nil for all.
  public var desiredKeys: [CKRecord.FieldKey]?
  /// Called when a record was received.
  public var perRecordProgressBlock: ((CKRecord.ID, Double) -> Void)?
  /// Called with the outcome of each record.
  public var perRecordResultBlock: ((CKRecord.ID, Result<CKRecord, any Error>) -> Void)?
  /// Called at the end.
  public var fetchRecordsResultBlock: ((Result<Void, any Error>) -> Void)?

  /// Called with the outcome of each record.
  @available(*, deprecated, renamed: "perRecordResultBlock")
  public var perRecordCompletionBlock: ((CKRecord?, CKRecord.ID?, (any Error)?) -> Void)? {
    get { olderItemBlock }
    set { olderItemBlock = newValue }
  }
  private var olderItemBlock: ((CKRecord?, CKRecord.ID?, (any Error)?) -> Void)?

  /// Called at the end, with what was found.
  @available(*, deprecated, renamed: "fetchRecordsResultBlock")
  public var fetchRecordsCompletionBlock: (([CKRecord.ID: CKRecord]?, (any Error)?) -> Void)? {
    get { olderBlock }
    set { olderBlock = newValue }
  }
  private var olderBlock: (([CKRecord.ID: CKRecord]?, (any Error)?) -> Void)?

  /// Creates an empty operation.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(recordIDs: [CKRecord.ID]) {
    self.init()
    self.recordIDs = recordIDs
  }

  /// Creates an operation that fetches the record of the signed-in user.
  public class func fetchCurrentUserRecordOperation() -> CKFetchRecordsOperation {
    let operation = CKFetchRecordsOperation()
    operation.fetchesCurrentUser = true
    return operation
  }

  private var fetchesCurrentUser = false

  override func run() async {
    do {
      let recordIDs = try await wantedRecordIDs()
      let results = try await TransferMeter.$report.withValue(progressReport) {
        try await target.records(for: recordIDs, desiredKeys: desiredKeys)
      }
      var errors: [AnyHashable: any Error] = [:]
      for recordID in recordIDs {
        guard let result = results[recordID] else { continue }
        if case .failure(let error) = result {
          errors[recordID] = error
        } else {
          perRecordProgressBlock?(recordID, 1)
        }
        perRecordResultBlock?(recordID, result)
        olderItemBlock?(try? result.get(), recordID, result.error)
      }
      let outcome = Self.result(errors)
      fetchRecordsResultBlock?(outcome)
      olderBlock?(results.compactMapValues { try? $0.get() }, outcome.error)
    } catch {
      fetchRecordsResultBlock?(.failure(error))
      olderBlock?(nil, error)
    }
  }

  /// Reports the download progress of records' files to the progress block.
  private var progressReport: (@Sendable (CKRecord.ID, Double) -> Void)? {
    guard perRecordProgressBlock != nil else { return nil }
    return { [self] recordID, fraction in perRecordProgressBlock?(recordID, fraction) }
  }

  private func wantedRecordIDs() async throws -> [CKRecord.ID] {
    try checkCancellation()
    guard fetchesCurrentUser else { return recordIDs ?? [] }
    return [try await targetContainer.userRecordID()]
  }
}
