import Foundation

/// Runs a query.
///
/// ```swift
/// let predicate = NSPredicate(format: "text BEGINSWITH %@", "Buy")
/// let query = CKQuery(recordType: "Note", predicate: predicate)
/// let operation = CKQueryOperation(query: query)
/// operation.zoneID = zoneID
/// operation.desiredKeys = ["text"]
/// operation.recordMatchedBlock = { _, result in
///   if let note = try? result.get(), let text: String = note["text"] { texts.append(text) }
/// }
/// operation.queryResultBlock = { result in
///   // A cursor in the result continues the query: CKQueryOperation(cursor:).
///   continuation.resume(with: result.map { _ in texts })
/// }
/// database.add(operation)
/// ```
public final class CKQueryOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The position at which a query continues.
  public typealias Cursor = CKQueryCursor

  /// Lets the service choose how many results it returns at a time.
  public static let maximumResults: Int = 0

  /// The query, for an operation that starts one.
  public var query: CKQuery?
  /// The cursor, for an operation that continues a query.
  public var cursor: CKQueryOperation.Cursor?
  /// The zone to search, or nil for all zones.
  public var zoneID: CKRecordZone.ID?
  /// The most results, or `maximumResults`.
  public var resultsLimit: Int = CKQueryOperation.maximumResults
  /// The keys to fetch, or nil for all.
  public var desiredKeys: [CKRecord.FieldKey]?
  /// Called with each result.
  public var recordMatchedBlock: ((CKRecord.ID, Result<CKRecord, any Error>) -> Void)?
  /// Called at the end, with the cursor of the remaining results, if there are any.
  public var queryResultBlock: ((Result<CKQueryOperation.Cursor?, any Error>) -> Void)?

  /// Called with each record that was found.
  @available(*, deprecated, renamed: "recordMatchedBlock")
  public var recordFetchedBlock: ((CKRecord) -> Void)? {
    get { olderItemBlock }
    set { olderItemBlock = newValue }
  }
  private var olderItemBlock: ((CKRecord) -> Void)?

  /// Called at the end, with the cursor of the remaining results, if there are any.
  @available(*, deprecated, renamed: "queryResultBlock")
  public var queryCompletionBlock: ((CKQueryOperation.Cursor?, (any Error)?) -> Void)? {
    get { olderBlock }
    set { olderBlock = newValue }
  }
  private var olderBlock: ((CKQueryOperation.Cursor?, (any Error)?) -> Void)?

  /// Creates an empty operation.
  public override init() {
    super.init()
  }

  /// Creates an operation that begins a query.
  public convenience init(query: CKQuery) {
    self.init()
    self.query = query
  }

  /// Creates an operation that continues a query.
  public convenience init(cursor: CKQueryOperation.Cursor) {
    self.init()
    self.cursor = cursor
  }

  override func run() async {
    do {
      try checkCancellation()
      let found: [(CKRecord.ID, Result<CKRecord, any Error>)]
      let next: Cursor?
      if let cursor {
        (found, next) = try await target.records(
          continuingMatchFrom: cursor,
          desiredKeys: desiredKeys,
          resultsLimit: resultsLimit
        )
      } else if let query {
        (found, next) = try await target.records(
          matching: query,
          inZoneWith: zoneID,
          desiredKeys: desiredKeys,
          resultsLimit: resultsLimit
        )
      } else {
        throw CKError(
          .invalidArguments,
          "A query operation needs a query or a cursor.",
          remedy: "Set one before the operation is queued."
        )
      }
      for (recordID, result) in found {
        recordMatchedBlock?(recordID, result)
        if let record = try? result.get() { olderItemBlock?(record) }
      }
      queryResultBlock?(.success(next))
      olderBlock?(next, nil)
    } catch {
      queryResultBlock?(.failure(error))
      olderBlock?(nil, error)
    }
  }
}
