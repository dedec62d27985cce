import Foundation

/// Saves and deletes records.
///
/// ```swift
/// let operation = CKModifyRecordsOperation(recordsToSave: notes, recordIDsToDelete: nil)
/// operation.savePolicy = .changedKeys
/// operation.perRecordSaveBlock = { recordID, result in
///   if case .failure(let error) = result { print(recordID.recordName, error) }
/// }
/// operation.modifyRecordsResultBlock = { result in
///   continuation.resume(with: result.map { notes.count })
/// }
/// database.add(operation)
/// ```
public final class CKModifyRecordsOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// How a save treats a record whose version on the server differs.
  ///
  /// A ``CKShare`` is always saved as with `ifServerRecordUnchanged`.
  public enum RecordSavePolicy: Int, Sendable {
    /// The save fails when the record on the server is newer.
    case ifServerRecordUnchanged = 0
    /// The changed keys are saved, regardless of the server's version.
    case changedKeys = 1
    /// All keys are saved, regardless of the server's version; keys that only the server has are
    /// kept.
    case allKeys = 2
  }

  /// The records to save.
  public var recordsToSave: [CKRecord]?
  /// The records to delete.
  public var recordIDsToDelete: [CKRecord.ID]?
  /// How a save treats a record whose version on the server differs.
  public var savePolicy: CKModifyRecordsOperation.RecordSavePolicy = .ifServerRecordUnchanged
  /// Whether all records of a custom zone are saved or none.
  public var isAtomic = true
  /// The app's own data for the request.
  ///
  /// Differs from CloudKit: the data is not sent, since requests of the web services have no member
  /// for it, and a fetch of the zone's changes never returns it.
  public var clientChangeTokenData: Data?
  /// Called when a record was sent.
  public var perRecordProgressBlock: ((CKRecord, Double) -> Void)?
  /// Called with the outcome of each save.
  public var perRecordSaveBlock: ((CKRecord.ID, Result<CKRecord, any Error>) -> Void)?
  /// Called with the outcome of each delete.
  public var perRecordDeleteBlock: ((CKRecord.ID, Result<Void, any Error>) -> Void)?
  /// Called at the end.
  public var modifyRecordsResultBlock: ((Result<Void, any Error>) -> Void)?

  /// Called with the outcome of each save.
  @available(*, deprecated, renamed: "perRecordSaveBlock")
  public var perRecordCompletionBlock: ((CKRecord, (any Error)?) -> Void)? {
    get { olderItemBlock }
    set { olderItemBlock = newValue }
  }
  private var olderItemBlock: ((CKRecord, (any Error)?) -> Void)?

  /// Called at the end, with what was saved and deleted.
  @available(*, deprecated, renamed: "modifyRecordsResultBlock")
  public var modifyRecordsCompletionBlock: (([CKRecord]?, [CKRecord.ID]?, (any Error)?) -> Void)? {
    get { olderBlock }
    set { olderBlock = newValue }
  }
  private var olderBlock: (([CKRecord]?, [CKRecord.ID]?, (any Error)?) -> Void)?

  /// Creates an empty operation.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(
    recordsToSave: [CKRecord]? = nil,
    recordIDsToDelete: [CKRecord.ID]? = nil
  ) {
    self.init()
    self.recordsToSave = recordsToSave
    self.recordIDsToDelete = recordIDsToDelete
  }

  override func run() async {
    do {
      try checkCancellation()
      let results = try await TransferMeter.$report.withValue(progressReport) {
        try await target.modifyRecords(
          saving: recordsToSave ?? [],
          deleting: recordIDsToDelete ?? [],
          savePolicy: savePolicy,
          atomically: isAtomic
        )
      }
      var errors: [AnyHashable: any Error] = [:]
      for record in recordsToSave ?? [] {
        guard let result = results.saveResults[record.recordID] else { continue }
        if case .failure(let error) = result {
          errors[record.recordID] = error
        } else {
          perRecordProgressBlock?(record, 1)
        }
        perRecordSaveBlock?(record.recordID, result)
        olderItemBlock?(record, result.error)
      }
      for recordID in recordIDsToDelete ?? [] {
        guard let result = results.deleteResults[recordID] else { continue }
        if case .failure(let error) = result { errors[recordID] = error }
        perRecordDeleteBlock?(recordID, result)
      }
      let saved = (recordsToSave ?? []).filter { errors[$0.recordID] == nil }
      let deleted = (recordIDsToDelete ?? []).filter { errors[$0] == nil }
      finish(Self.result(errors), saved, deleted)
    } catch {
      finish(.failure(error), nil, nil)
    }
  }

  private func finish(
    _ result: Result<Void, any Error>,
    _ saved: [CKRecord]?,
    _ deleted: [CKRecord.ID]?
  ) {
    modifyRecordsResultBlock?(result)
    olderBlock?(saved, deleted, result.error)
  }

  /// Reports the upload progress of records' files to the progress block.
  private var progressReport: (@Sendable (CKRecord.ID, Double) -> Void)? {
    guard perRecordProgressBlock != nil else { return nil }
    return { [self] recordID, fraction in
      guard let record = recordsToSave?.first(where: { $0.recordID == recordID }) else { return }
      perRecordProgressBlock?(record, fraction)
    }
  }
}
