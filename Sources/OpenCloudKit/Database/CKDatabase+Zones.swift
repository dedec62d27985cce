import CloudKitWebServices
import Foundation

extension CKDatabase {
  /// Fetches all zones.
  public func allRecordZones() async throws -> [CKRecordZone] {
    let reply = try await container.client().call(
      .listZones,
      scope: databaseScope,
      repeatable: true,
      as: ZonesResponse.self
    )
    return try reply.zones.map { try item($0, in: .default) }
      .filter { $0.deleted != true }.map(mapping.zone)
  }

  /// Fetches a zone.
  public func recordZone(for zoneID: CKRecordZone.ID) async throws -> CKRecordZone {
    guard let result = try await recordZones(for: [zoneID])[zoneID] else {
      throw CKError(.zoneNotFound, "Zone not found: \(zoneID.zoneName)")
    }
    return try result.get()
  }

  /// Fetches zones; each has a result of its own.
  public func recordZones(
    for ids: [CKRecordZone.ID]
  ) async throws -> [CKRecordZone.ID: Result<CKRecordZone, any Error>] {
    var results: [CKRecordZone.ID: Result<CKRecordZone, any Error>] = [:]
    for slice in Self.slices(ids, of: RecordModification.operationLimit) {
      let reply = try await container.client().call(
        .lookupZones,
        scope: databaseScope,
        body: LookupZonesRequest(zones: slice.map(mapping.wire)),
        repeatable: true,
        as: ZonesResponse.self
      )
      guard reply.zones.count == slice.count else {
        throw CKError(
          inconclusive: "The service answered \(reply.zones.count) of \(slice.count) look-ups."
        )
      }
      for (zoneID, item) in zip(slice, reply.zones) {
        results[zoneID] = zoneResult(item, zoneID: zoneID).map(mapping.zone)
      }
    }
    return results
  }

  /// Saves a zone: creates it, unless it exists.
  @discardableResult
  public func save(_ zone: CKRecordZone) async throws -> CKRecordZone {
    let results = try await modifyRecordZones(saving: [zone], deleting: [])
    guard let result = results.saveResults[zone.zoneID] else {
      throw CKError(.internalError, "The service did not answer the save.")
    }
    return try result.get()
  }

  /// Deletes a zone with all its records.
  @discardableResult
  public func deleteRecordZone(withID zoneID: CKRecordZone.ID) async throws -> CKRecordZone.ID {
    let results = try await modifyRecordZones(saving: [], deleting: [zoneID])
    try results.deleteResults[zoneID]?.get()
    return zoneID
  }

  /// Saves and deletes zones; each has a result of its own.
  public func modifyRecordZones(
    saving recordZonesToSave: [CKRecordZone],
    deleting recordZoneIDsToDelete: [CKRecordZone.ID]
  ) async throws -> (
    saveResults: [CKRecordZone.ID: Result<CKRecordZone, any Error>],
    deleteResults: [CKRecordZone.ID: Result<Void, any Error>]
  ) {
    var saveResults: [CKRecordZone.ID: Result<CKRecordZone, any Error>] = [:]
    var deleteResults: [CKRecordZone.ID: Result<Void, any Error>] = [:]
    let operations: [(ZoneOperationType, CKRecordZone.ID)] =
      recordZonesToSave.map { (.create, $0.zoneID) } + recordZoneIDsToDelete.map { (.delete, $0) }
    for slice in Self.slices(operations, of: RecordModification.operationLimit) {
      let reply = try await container.client().call(
        .modifyZones,
        scope: databaseScope,
        body: ModifyZonesRequest(
          operations: slice.map {
            ZoneOperation(operationType: $0, zone: ZoneDictionary(zoneID: mapping.wire($1)))
          }
        ),
        // Creating a zone that exists succeeds, so the request can be repeated.
        repeatable: slice.allSatisfy { $0.0 == .create },
        as: ZonesResponse.self
      )
      guard reply.zones.count == slice.count else {
        throw CKError(
          inconclusive: "The service answered \(reply.zones.count) of \(slice.count) operations."
        )
      }
      for ((type, zoneID), item) in zip(slice, reply.zones) {
        let result = zoneResult(item, zoneID: zoneID)
        if type == .create {
          saveResults[zoneID] = result.map(mapping.zone)
        } else {
          deleteResults[zoneID] = result.map { _ in }
        }
      }
    }
    return (saveResults, deleteResults)
  }

  private func zoneResult(
    _ item: ItemResult<ZoneDictionary>,
    zoneID: CKRecordZone.ID
  ) -> Result<ZoneDictionary, any Error> {
    do {
      return .success(try self.item(item, in: zoneID))
    } catch {
      return .failure(error)
    }
  }

  /// An item of a reply; throws if the service answered with an error.
  func item<Item>(
    _ item: ItemResult<Item>,
    in zoneID: CKRecordZone.ID
  ) throws(CKError) -> Item {
    switch item {
    case .success(let value): return value
    case .failure(let error): throw CKError(error, mapping: mapping, zone: zoneID)
    }
  }
}
