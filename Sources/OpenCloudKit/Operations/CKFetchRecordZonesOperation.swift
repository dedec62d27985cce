import Foundation

/// Fetches zones.
public final class CKFetchRecordZonesOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The zones to fetch, or nil for all.
  public var recordZoneIDs: [CKRecordZone.ID]?
  /// Called with the outcome of each zone.
  public var perRecordZoneResultBlock: ((CKRecordZone.ID, Result<CKRecordZone, any Error>) -> Void)?
  /// Called at the end.
  public var fetchRecordZonesResultBlock: ((Result<Void, any Error>) -> Void)?

  /// Called at the end, with what was found.
  @available(*, deprecated, renamed: "fetchRecordZonesResultBlock")
  public var fetchRecordZonesCompletionBlock:
    (([CKRecordZone.ID: CKRecordZone]?, (any Error)?) -> Void)?
  {
    get { olderBlock }
    set { olderBlock = newValue }
  }
  private var olderBlock: (([CKRecordZone.ID: CKRecordZone]?, (any Error)?) -> Void)?

  /// Creates an operation that fetches all zones.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(recordZoneIDs zoneIDs: [CKRecordZone.ID]) {
    self.init()
    recordZoneIDs = zoneIDs
  }

  /// Creates an operation that fetches all zones.
  public class func fetchAllRecordZonesOperation() -> CKFetchRecordZonesOperation {
    CKFetchRecordZonesOperation()
  }

  override func run() async {
    do {
      try checkCancellation()
      var errors: [AnyHashable: any Error] = [:]
      var zones: [CKRecordZone.ID: CKRecordZone] = [:]
      if let ids = recordZoneIDs {
        let results = try await target.recordZones(for: ids)
        for id in ids {
          guard let result = results[id] else { continue }
          if case .failure(let error) = result { errors[id] = error }
          zones[id] = try? result.get()
          perRecordZoneResultBlock?(id, result)
        }
      } else {
        for found in try await target.allRecordZones() {
          zones[found.zoneID] = found
          perRecordZoneResultBlock?(found.zoneID, .success(found))
        }
      }
      let outcome = Self.result(errors)
      fetchRecordZonesResultBlock?(outcome)
      olderBlock?(zones, outcome.error)
    } catch {
      fetchRecordZonesResultBlock?(.failure(error))
      olderBlock?(nil, error)
    }
  }
}
