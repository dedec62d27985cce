import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("CKSyncEngine: refused, unanswered and too large sends")
struct SyncEngineSendTests {
  /// A delegate that supplies the given records and keeps what was sent.
  private final class Sender: CKSyncEngineDelegate {
    struct Outcome: Sendable {
      var saved: Set<String> = []
      var deleted: Set<String> = []
      var failures: [String: CKError.Code] = [:]
      /// How many sends have ended.
      var sends = 0
    }

    private let records = Mutex<[CKRecord.ID: CKRecord]>([:])
    private let sent = Mutex(Outcome())

    private let ends = AsyncStream<Void>.makeStream()

    var outcome: Outcome { sent.withLock { $0 } }

    func save(_ saved: CKRecord..., on engine: CKSyncEngine) {
      records.withLock { records in
        for record in saved { records[record.recordID] = record }
      }
      engine.state.add(pendingRecordZoneChanges: saved.map { .saveRecord($0.recordID) })
    }

    /// Returns when a send has ended after which the condition holds.
    func wait(until isSo: (Outcome) -> Bool) async {
      for await _ in ends.stream where isSo(outcome) { return }
    }

    func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) async {
      if case .didSendChanges = event {
        sent.withLock { $0.sends += 1 }
        ends.continuation.yield()
      }
      guard case .sentRecordZoneChanges(let event) = event else { return }
      sent.withLock { sent in
        sent.saved.formUnion(event.savedRecords.map(\.recordID.recordName))
        sent.deleted.formUnion(event.deletedRecordIDs.map(\.recordName))
        for failure in event.failedRecordSaves {
          sent.failures[failure.record.recordID.recordName] = failure.error.code
        }
        for (recordID, error) in event.failedRecordDeletes {
          sent.failures[recordID.recordName] = error.code
        }
      }
    }

    func nextRecordZoneChangeBatch(
      _ context: CKSyncEngine.SendChangesContext,
      syncEngine: CKSyncEngine
    ) async -> CKSyncEngine.RecordZoneChangeBatch? {
      await CKSyncEngine.RecordZoneChangeBatch(
        pendingChanges: syncEngine.state.pendingRecordZoneChanges
      ) { recordID in
        self.records.withLock { $0[recordID] }
      }
    }
  }

  private func recordID(_ name: String) -> CKRecord.ID { SyncedNotes.recordID(name) }

  private func note(_ name: String) -> CKRecord {
    let record = CKRecord(recordType: "Note", recordID: recordID(name))
    record["text"] = name
    return record
  }

  /// An engine of a zone that has the record `old`.
  private func withEngine(
    limits: (inout ServiceLimits) -> Void = { _ in },
    _ body: (CKSyncEngine, Sender, RealService) async throws -> Void
  ) async throws {
    let service = try await RealService(limits: limits)
    let database = try await service.device("one").privateCloudDatabase
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    try await database.save(note("old"))
    let sender = Sender()
    var configuration = CKSyncEngine.Configuration(
      database: database,
      stateSerialization: nil,
      delegate: sender
    )
    configuration.automaticallySync = false
    try await body(CKSyncEngine(configuration), sender, service)
  }

  /// The names of the zone's records on the service.
  private func names(_ engine: CKSyncEngine) async throws -> Set<String> {
    let page = try await engine.database.recordZoneChanges(
      inZoneWith: SyncedNotes.zoneID,
      since: nil
    )
    return Set(page.modificationResultsByID.keys.map(\.recordName))
  }

  // MARK: One record that can't be sent

  @Test("A missing asset file fails its record, and the other changes of the zone are sent")
  func missingFile() async throws {
    try await withEngine { engine, sender, _ in
      let bad = note("bad")
      bad["file"] = CKAsset(fileURL: URL(fileURLWithPath: "/nowhere/at/all"))
      sender.save(bad, on: engine)
      sender.save(note("good"), on: engine)
      engine.state.add(pendingRecordZoneChanges: [.deleteRecord(recordID("old"))])
      let error = await #expect(throws: CKError.self) { try await engine.sendChanges() }
      #expect(error?.code == .partialFailure)
      #expect(sender.outcome.failures == ["bad": .assetFileNotFound])
      #expect(sender.outcome.saved == ["good"])
      #expect(sender.outcome.deleted == ["old"])
      let stored = try await names(engine)
      #expect(stored == ["good"])
      #expect(engine.state.pendingRecordZoneChanges.isEmpty)
    }
  }

  @Test("A file that the service finds too large fails its record alone")
  func tooLargeFile() async throws {
    try await withEngine(limits: { $0.assetSize = 10 }) { engine, sender, _ in
      let file = FileManager.default.temporaryDirectory
        .appendingPathComponent("asset-\(UUID().uuidString)")
      try Data("eleven bytes".utf8).write(to: file)
      defer { try? FileManager.default.removeItem(at: file) }
      let bad = note("bad")
      bad["file"] = CKAsset(fileURL: file)
      sender.save(bad, on: engine)
      sender.save(note("good"), on: engine)
      await #expect(throws: CKError.self) { try await engine.sendChanges() }
      #expect(sender.outcome.failures == ["bad": .quotaExceeded])
      let stored = try await names(engine)
      #expect(stored == ["good", "old"])
    }
  }

  private static func location(altitude: Double) -> CLLocation {
    CLLocation(
      coordinate: CLLocationCoordinate2D(latitude: 1, longitude: 2),
      altitude: altitude,
      horizontalAccuracy: 1,
      verticalAccuracy: 1,
      timestamp: Date(timeIntervalSince1970: 0)
    )
  }

  @Test("A value that can't be sent fails its record alone", arguments: 0..<3)
  func invalidValue(number: Int) async throws {
    try await withEngine { engine, sender, _ in
      let bad = note("bad")
      switch number {
      case 0: bad["number"] = Double.nan
      case 1: bad["place"] = Self.location(altitude: .nan)
      default: bad["places"] = [Self.location(altitude: 0), Self.location(altitude: .infinity)]
      }
      sender.save(bad, on: engine)
      sender.save(note("good"), on: engine)
      await #expect(throws: CKError.self) { try await engine.sendChanges() }
      #expect(sender.outcome.failures == ["bad": .invalidArguments])
      let stored = try await names(engine)
      #expect(stored == ["good", "old"])
    }
  }

  // MARK: Replies that are not the service's

  /// Replies that do not show that the service refused the changes.
  private static let inconclusive: [(status: Int, body: String)] = [
    (200, "<html>Sign in to the network</html>"), (200, "{\"records\":[{\"recordN"),
    (200, "{\"records\":[]}"), (302, ""), (403, "<h1>Forbidden</h1>"),
    (404, "<h1>Not found</h1>"), (409, ""), (500, "{\"serverErrorCode\":\"INTERNAL_ERROR\"}"),
  ]

  @Test(
    "Changes stay pending after a reply that is not the service's, or its internal error",
    arguments: inconclusive
  )
  func garbled(status: Int, body: String) async throws {
    try await withEngine { engine, sender, service in
      sender.save(note("new"), on: engine)
      service.intercept { request in
        guard request.path.contains("records/modify") else { return nil }
        return WebServiceResponse(status: status, body: Data(body.utf8))
      }
      await #expect(throws: CKError.self) { try await engine.sendChanges() }
      #expect(engine.state.pendingRecordZoneChanges == [.saveRecord(recordID("new"))])
      service.intercept(nil)
      try await engine.sendChanges()
      #expect(engine.state.pendingRecordZoneChanges.isEmpty)
      let stored = try await names(engine)
      #expect(stored == ["new", "old"])
    }
  }

  @Test(
    "Zones stay pending after a reply that is not the service's",
    arguments: inconclusive + [(200, "{\"zones\":[]}")]
  )
  func garbledZones(status: Int, body: String) async throws {
    try await withEngine { engine, _, service in
      let zone = CKRecordZone(zoneName: "other")
      engine.state.add(pendingDatabaseChanges: [.saveZone(zone)])
      service.intercept { request in
        guard request.path.contains("zones/modify") else { return nil }
        return WebServiceResponse(status: status, body: Data(body.utf8))
      }
      await #expect(throws: CKError.self) { try await engine.sendChanges() }
      #expect(engine.state.pendingDatabaseChanges.count == 1)
      service.intercept(nil)
      try await engine.sendChanges()
      #expect(engine.state.pendingDatabaseChanges.isEmpty)
    }
  }

  @Test("A fetch whose reply is not the service's is scheduled again", arguments: inconclusive)
  func garbledFetch(status: Int, body: String) async throws {
    let service = ScriptedService()
    service.answer(body, status: status)
    let database = service.container().privateCloudDatabase
    let error = try #require(
      await #expect(throws: CKError.self) {
        _ = try await database.databaseChanges(since: nil)
      }
    )
    var schedule = SyncSchedule()
    schedule.fail(.fetch, error, at: 0, jitter: 0)
    #expect(schedule.step(at: 600) == .run(.fetch))
  }

  @Test("An error of the service's own, of a record or of the request, is not retried")
  func conclusive() async throws {
    for (status, body) in [
      (404, "{\"serverErrorCode\":\"NOT_FOUND\"}"),
      (400, "{\"serverErrorCode\":\"BAD_REQUEST\"}"),
      (200, "{\"records\":[{\"recordName\":\"n\",\"serverErrorCode\":\"INTERNAL_ERROR\"}]}"),
    ] {
      let service = ScriptedService()
      service.answer(body, status: status)
      let database = service.container().privateCloudDatabase
      let error = try #require(
        await #expect(throws: CKError.self) { try await database.save(note("n")) }
      )
      #expect(!SyncEngineState.retries(error), "\(body)")
    }
  }

  // MARK: Batches that are too large

  /// Refuses requests with more than some operations, as a proxy with a limit in bytes does.
  private func limit(_ service: RealService, to count: Int) {
    service.intercept { request in
      guard request.path.contains("records/modify") else { return nil }
      let body = try? JSONSerialization.jsonObject(with: request.body) as? [String: Any]
      let operations = (body?["operations"] as? [Any])?.count ?? 0
      return operations > count ? WebServiceResponse(status: 413, body: Data()) : nil
    }
  }

  @Test("A batch that the service finds too large is sent in smaller ones", arguments: [1, 3])
  func tooLarge(count: Int) async throws {
    try await withEngine { engine, sender, service in
      limit(service, to: count)
      let new = (0..<10).map { "new \($0)" }
      for name in new { sender.save(note(name), on: engine) }
      engine.state.add(pendingRecordZoneChanges: [.deleteRecord(recordID("old"))])
      try await engine.sendChanges()
      #expect(sender.outcome.saved == Set(new))
      #expect(sender.outcome.deleted == ["old"])
      #expect(sender.outcome.failures.isEmpty)
      #expect(engine.state.pendingRecordZoneChanges.isEmpty)
      let stored = try await names(engine)
      #expect(stored == Set(new))
    }
  }

  @Test("A single record that is too large is reported, and the rest of its batch is sent")
  func tooLargeRecord() async throws {
    try await withEngine { engine, sender, service in
      service.intercept { request in
        let isLarge = String(decoding: request.body, as: UTF8.self).contains("large")
        guard request.path.contains("records/modify"), isLarge else { return nil }
        return WebServiceResponse(status: 413, body: Data())
      }
      for name in ["a", "large", "c", "d"] { sender.save(note(name), on: engine) }
      await #expect(throws: CKError.self) { try await engine.sendChanges() }
      #expect(sender.outcome.failures == ["large": .limitExceeded])
      let stored = try await names(engine)
      #expect(stored == ["a", "c", "d", "old"])
    }
  }

  // MARK: Changes at which the service fails

  /// Answers each request that saves one of the records with the service's own failure.
  private func fail(_ service: RealService, at name: String) {
    service.intercept { request in
      let isBroken = String(decoding: request.body, as: UTF8.self).contains(name)
      guard request.path.contains("records/modify"), isBroken else { return nil }
      return WebServiceResponse(
        status: 500,
        body: Data("{\"serverErrorCode\":\"INTERNAL_ERROR\"}".utf8)
      )
    }
  }

  @Test("A change at which the service fails stays pending, and holds up no other change")
  func poison() async throws {
    try await withEngine { engine, sender, service in
      fail(service, at: "poison")
      let good = (0..<10).map { "new \($0)" }
      for name in good.prefix(4) + ["poison"] + good.dropFirst(4) {
        sender.save(note(name), on: engine)
      }
      let error = await #expect(throws: CKError.self) { try await engine.sendChanges() }
      #expect(error?.isOfParkedChangesOnly == true)
      #expect(engine.state.pendingRecordZoneChanges == [.saveRecord(recordID("poison"))])
      #expect(try await names(engine) == Set(good + ["old"]))
      // A later change passes too, and the parked one once the service has recovered.
      sender.save(note("later"), on: engine)
      await #expect(throws: CKError.self) { try await engine.sendChanges() }
      #expect(engine.state.pendingRecordZoneChanges == [.saveRecord(recordID("poison"))])
      service.intercept(nil)
      try await engine.sendChanges()
      #expect(engine.state.pendingRecordZoneChanges.isEmpty)
      #expect(try await names(engine) == Set(good + ["old", "poison", "later"]))
    }
  }

  @Test("A change at which the service fails, in a batch of its own, holds up no later one")
  func poisonAlone() async throws {
    try await withEngine { engine, sender, service in
      fail(service, at: "poison")
      let poison = note("poison")
      poison["text"] = String(repeating: "x", count: 1_900_000)
      sender.save(poison, on: engine)
      let other = note("other")
      other["text"] = String(repeating: "y", count: 500_000)
      sender.save(other, on: engine)
      // The first batch has no place for the other one.
      await #expect(throws: CKError.self) { try await engine.sendChanges() }
      await #expect(throws: CKError.self) { try await engine.sendChanges() }
      #expect(engine.state.pendingRecordZoneChanges == [.saveRecord(recordID("poison"))])
      let stored = try await names(engine)
      #expect(stored == ["old", "other"])
    }
  }

  @Test("Changes do not wait for a retry of their own because the whole service fails")
  func outage() async throws {
    try await withEngine { engine, sender, service in
      fail(service, at: "new")
      sender.save(note("new"), on: engine)
      for _ in 0..<3 {
        await #expect(throws: CKError.self) { try await engine.sendChanges() }
      }
      #expect(engine.waitingChanges(.scheduled).isEmpty)
    }
  }

  /// A clock that stands still, with sleeps that end at once if they are short.
  private struct StandingClock: EffectClock {
    var now: Date { Date(timeIntervalSince1970: 0) }
    var uptime: Double { 0 }
    func sleep(seconds: Double) async throws {
      guard seconds > 1 else { return await Task.yield() }
      let (stream, continuation) = AsyncStream<Void>.makeStream()
      for await _ in stream {}
      withExtendedLifetime(continuation) {}
      try Task.checkCancellation()
    }
  }

  @Test("A change that is waiting for its retry is sent at once when the app adds it again")
  func editedPoison() async throws {
    let service = try await RealService()
    let effects = Effects(
      clock: StandingClock(),
      randomness: SeededRandomness(seed: 1),
      tasks: PoolTaskSpawner()
    )
    let database = try await service.device("one", effects: effects).privateCloudDatabase
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    let sender = Sender()
    let engine = CKSyncEngine(
      CKSyncEngine.Configuration(
        database: database,
        stateSerialization: nil,
        delegate: sender
      )
    )
    fail(service, at: "poison")
    sender.save(note("good"), note("poison"), on: engine)
    await sender.wait { $0.failures["poison"] != nil }
    #expect(engine.state.pendingRecordZoneChanges == [.saveRecord(recordID("poison"))])
    service.intercept(nil)
    // Another change is sent without the parked one, whose retry is due in half a minute.
    sender.save(note("later"), on: engine)
    await sender.wait { $0.saved.contains("later") }
    #expect(sender.outcome.saved == ["good", "later"])
    let sends = sender.outcome.sends
    sender.save(note("poison"), on: engine)
    await sender.wait { $0.sends > sends }
    #expect(sender.outcome.saved == ["good", "later", "poison"])
    #expect(engine.state.pendingRecordZoneChanges.isEmpty)
    await engine.cancelOperations()
  }

  @Test("A service that fails at every request is not asked for each change alone")
  func brokenService() async throws {
    try await withEngine { engine, sender, service in
      let count = Mutex(0)
      service.intercept { request in
        guard request.path.contains("records/modify") else { return nil }
        count.withLock { $0 += 1 }
        return WebServiceResponse(
          status: 500,
          body: Data("{\"serverErrorCode\":\"INTERNAL_ERROR\"}".utf8)
        )
      }
      let new = (0..<60).map { "new \($0)" }
      for name in new { sender.save(note(name), on: engine) }
      let error = await #expect(throws: CKError.self) { try await engine.sendChanges() }
      #expect(error.map(SyncEngineState.retries) == true)
      #expect(engine.state.pendingRecordZoneChanges.count == 60)
      #expect(count.withLock { $0 } <= 12)
    }
  }

  @Test("A planned send runs at its time, after a fetch that is due")
  func plannedSend() {
    var schedule = SyncSchedule()
    schedule.requestSend(at: 30)
    schedule.requestSend(at: 50)
    #expect(schedule.step(at: 10) == .wait(20))
    #expect(schedule.step(at: 30) == .run(.send))
    schedule.request(.fetch)
    #expect(schedule.step(at: 30) == .run(.fetch))
    schedule.begin(.fetch)
    schedule.begin(.send)
    #expect(schedule.step(at: 30) == .rest)
  }
}
