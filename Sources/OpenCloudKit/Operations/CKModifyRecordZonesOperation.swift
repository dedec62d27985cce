import Foundation

/// Saves and deletes zones.
public final class CKModifyRecordZonesOperation: CKDatabaseOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The zones to save.
  public var recordZonesToSave: [CKRecordZone]?
  /// The zones to delete.
  public var recordZoneIDsToDelete: [CKRecordZone.ID]?
  /// Called with the outcome of each save.
  public var perRecordZoneSaveBlock: ((CKRecordZone.ID, Result<CKRecordZone, any Error>) -> Void)?
  /// Called with the outcome of each delete.
  public var perRecordZoneDeleteBlock: ((CKRecordZone.ID, Result<Void, any Error>) -> Void)?
  /// Called at the end.
  public var modifyRecordZonesResultBlock: ((Result<Void, any Error>) -> Void)?

  /// Called at the end, with what was saved and deleted.
  @available(*, deprecated, renamed: "modifyRecordZonesResultBlock")
  public var modifyRecordZonesCompletionBlock:
    (([CKRecordZone]?, [CKRecordZone.ID]?, (any Error)?) -> Void)?
  {
    get { olderBlock }
    set { olderBlock = newValue }
  }
  private var olderBlock: (([CKRecordZone]?, [CKRecordZone.ID]?, (any Error)?) -> Void)?

  /// Creates an empty operation.
  public override init() {
    super.init()
  }

  /// Creates an operation.
  public convenience init(
    recordZonesToSave: [CKRecordZone]? = nil,
    recordZoneIDsToDelete: [CKRecordZone.ID]? = nil
  ) {
    self.init()
    self.recordZonesToSave = recordZonesToSave
    self.recordZoneIDsToDelete = recordZoneIDsToDelete
  }

  override func run() async {
    do {
      try checkCancellation()
      let results = try await target.modifyRecordZones(
        saving: recordZonesToSave ?? [],
        deleting: recordZoneIDsToDelete ?? []
      )
      var errors: [AnyHashable: any Error] = [:]
      for zone in recordZonesToSave ?? [] {
        guard let result = results.saveResults[zone.zoneID] else { continue }
        if case .failure(let error) = result { errors[zone.zoneID] = error }
        perRecordZoneSaveBlock?(zone.zoneID, result)
      }
      for zoneID in recordZoneIDsToDelete ?? [] {
        guard let result = results.deleteResults[zoneID] else { continue }
        if case .failure(let error) = result { errors[zoneID] = error }
        perRecordZoneDeleteBlock?(zoneID, result)
      }
      let outcome = Self.result(errors)
      modifyRecordZonesResultBlock?(outcome)
      olderBlock?(
        (recordZonesToSave ?? []).filter { errors[$0.zoneID] == nil },
        (recordZoneIDsToDelete ?? []).filter { errors[$0] == nil },
        outcome.error
      )
    } catch {
      modifyRecordZonesResultBlock?(.failure(error))
      olderBlock?(nil, nil, error)
    }
  }
}
