import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("CKSyncEngine: what one failing zone or change holds up")
struct SyncEngineProgressTests {
  /// Saves zones with one record each, which has the zone's name.
  private func saveZones(_ names: [String], _ service: RealService) async throws {
    let database = try await service.device("writer").privateCloudDatabase
    for name in names {
      let zoneID = try await database.save(CKRecordZone(zoneName: name)).zoneID
      let record = CKRecord(
        recordType: "Note",
        recordID: CKRecord.ID(recordName: name, zoneID: zoneID)
      )
      record["text"] = name
      try await database.save(record)
    }
  }

  private static func refusal(_ status: Int, _ code: String) -> WebServiceResponse {
    WebServiceResponse(status: status, body: Data("{\"serverErrorCode\":\"\(code)\"}".utf8))
  }

  @Test(
    "A zone at which the service fails does not keep the other zones from being fetched",
    arguments: ["INTERNAL_ERROR", "ZONE_BUSY"]
  )
  func brokenZone(code: String) async throws {
    let service = try await RealService()
    try await saveZones(["first", "second"], service)
    service.intercept { request in
      guard request.path.contains("changes/zone"),
        String(decoding: request.body, as: UTF8.self).contains("\"first\"")
      else { return nil }
      return Self.refusal(code == "ZONE_BUSY" ? 503 : 500, code)
    }
    let notes = SyncedNotes()
    // The client repeats a request to a busy zone after a pause.
    let effects = Effects(
      clock: LeapingClock(),
      randomness: SeededRandomness(seed: 3),
      tasks: PoolTaskSpawner()
    )
    let engine = notes.engine(on: try await service.device("reader", effects: effects))
    let error = await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    #expect(notes.texts == ["second": "second"])
    let zones = error?.partialErrorsByItemID?.keys.compactMap { $0.base as? CKRecordZone.ID }
    #expect(zones?.map(\.zoneName) == ["first"])
    #expect(engine.state.zoneIDsWithUnfetchedServerChanges.map(\.zoneName) == ["first"])
    service.intercept(nil)
    try await engine.fetchChanges()
    #expect(notes.texts == ["first": "first", "second": "second"])
  }

  @Test("A fetch ends after many failing zones, and the next one begins with the others")
  func manyBrokenZones() async throws {
    let service = try await RealService()
    try await saveZones((10..<25).map { "bad\($0)" } + ["good"], service)
    let count = Mutex(0)
    service.intercept { request in
      guard request.path.contains("changes/zone"),
        String(decoding: request.body, as: UTF8.self).contains("\"bad")
      else { return nil }
      count.withLock { $0 += 1 }
      return Self.refusal(500, "INTERNAL_ERROR")
    }
    let notes = SyncedNotes()
    let engine = notes.engine(on: try await service.device("reader"))
    let error = await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    // No zone was read: the service is the cause.
    #expect(error.map(SyncEngineState.retries) == true)
    #expect(count.withLock { $0 } == 12)
    await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    #expect(notes.texts == ["good": "good"])
  }

  @Test("A change for which the service refuses a whole request is refused alone")
  func refusedRequest() async throws {
    let service = try await RealService()
    let database = try await service.device("one").privateCloudDatabase
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    service.intercept { request in
      guard request.path.contains("records/modify"),
        String(decoding: request.body, as: UTF8.self).contains("poison")
      else { return nil }
      return Self.refusal(400, "BAD_REQUEST")
    }
    let notes = SyncedNotes()
    let engine = notes.engine(on: database.container)
    let names = (0..<4).map { "\($0)" } + ["poison"] + (4..<9).map { "\($0)" }
    for name in names { notes.write(name, name, on: engine) }
    let error = await #expect(throws: CKError.self) { try await engine.sendChanges() }
    let failures = error?.partialErrorsByItemID ?? [:]
    #expect(failures.keys.compactMap { ($0.base as? CKRecord.ID)?.recordName } == ["poison"])
    let page = try await database.recordZoneChanges(inZoneWith: SyncedNotes.zoneID, since: nil)
    #expect(
      Set(page.modificationResultsByID.keys.map(\.recordName)) == Set(names).subtracting(["poison"])
    )
    #expect(engine.state.pendingRecordZoneChanges.isEmpty)
  }

  /// Sends 200 changes, of which the service refuses those at the positions with their requests.
  ///
  /// Returns the numbers of failures and of stored records.
  private func refuse(_ positions: Range<Int>) async throws -> (failures: Int, stored: Int) {
    let service = try await RealService()
    let database = try await service.device("one").privateCloudDatabase
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    service.intercept { request in
      guard request.path.contains("records/modify"),
        String(decoding: request.body, as: UTF8.self).contains("poison")
      else { return nil }
      return Self.refusal(400, "BAD_REQUEST")
    }
    let notes = SyncedNotes()
    let engine = notes.engine(on: database.container)
    for index in 0..<200 {
      let name = positions.contains(index) ? "poison\(index)" : "\(index)"
      notes.write(name, name, on: engine)
    }
    let error = await #expect(throws: CKError.self) { try await engine.sendChanges() }
    #expect(engine.state.pendingRecordZoneChanges.isEmpty)
    let page = try await database.recordZoneChanges(inZoneWith: SyncedNotes.zoneID, since: nil)
    return (error?.partialErrorsByItemID?.count ?? 0, page.modificationResultsByID.count)
  }

  @Test("Refused changes side by side take no others with them", arguments: [0..<8, 93..<101])
  func manyRefused(positions: Range<Int>) async throws {
    let outcome = try await refuse(positions)
    #expect(outcome.failures == 8)
    #expect(outcome.stored == 192)
  }

  @Test("If a service refuses every request, changes that it did not refuse alone stay pending")
  func allRefused() async throws {
    let service = try await RealService()
    let database = try await service.device("one").privateCloudDatabase
    let count = Mutex(0)
    service.intercept { request in
      guard request.path.contains("records/modify") else { return nil }
      count.withLock { $0 += 1 }
      return Self.refusal(400, "BAD_REQUEST")
    }
    let notes = SyncedNotes()
    let engine = notes.engine(on: database.container)
    for index in 0..<200 { notes.write("\(index)", "text", on: engine) }
    let error = await #expect(throws: CKError.self) { try await engine.sendChanges() }
    let failed = error?.partialErrorsByItemID?.count ?? 0
    #expect(count.withLock { $0 } == 32)
    #expect(failed > 0)
    #expect(engine.state.pendingRecordZoneChanges.count == 200 - failed)
    // The rest is sent when the service accepts it.
    service.intercept(nil)
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    try await engine.sendChanges()
    #expect(engine.state.pendingRecordZoneChanges.isEmpty)
  }

  @Test("A batch is not split because a proxy answers in the service's place")
  func proxy() async throws {
    let service = try await RealService()
    let database = try await service.device("one").privateCloudDatabase
    let count = Mutex(0)
    service.intercept { request in
      guard request.path.contains("records/modify") else { return nil }
      count.withLock { $0 += 1 }
      return WebServiceResponse(status: 405, body: Data("<html>".utf8))
    }
    let notes = SyncedNotes()
    let engine = notes.engine(on: database.container)
    for index in 0..<8 { notes.write("\(index)", "text", on: engine) }
    await #expect(throws: CKError.self) { try await engine.sendChanges() }
    #expect(count.withLock { $0 } == 1)
    #expect(engine.state.pendingRecordZoneChanges.count == 8)
  }
}
