import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("CKSyncEngine: what a fetch delivers although a part of it fails")
struct SyncEnginePartialFetchTests {
  private static func failure(_ status: Int, _ code: String) -> WebServiceResponse {
    WebServiceResponse(status: status, body: Data("{\"serverErrorCode\":\"\(code)\"}".utf8))
  }

  private static func isZone(_ name: String, _ request: WebServiceRequest) -> Bool {
    request.path.contains("changes/zone")
      && String(decoding: request.body, as: UTF8.self).contains("\"\(name)\"")
  }

  /// Saves a record with the zone's name into a zone.
  private func save(
    _ zoneName: String,
    on database: CKDatabase,
    bytes: String? = nil
  ) async throws {
    let zoneID = try await database.save(CKRecordZone(zoneName: zoneName)).zoneID
    let record = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: zoneName, zoneID: zoneID)
    )
    record["text"] = zoneName
    guard let bytes else { return _ = try await database.save(record) }
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("asset-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: file) }
    try Data(bytes.utf8).write(to: file)
    record["file"] = CKAsset(fileURL: file)
    try await database.save(record)
  }

  /// A clock that stands still; sleeps of up to a minute end at once.
  private struct StandingClock: EffectClock {
    var now: Date { Date(timeIntervalSince1970: 0) }
    var uptime: Double { 0 }
    func sleep(seconds: Double) async throws {
      guard seconds > 60 else { return await Task.yield() }
      let (stream, continuation) = AsyncStream<Void>.makeStream()
      for await _ in stream {}
      withExtendedLifetime(continuation) {}
      try Task.checkCancellation()
    }
  }

  private var effects: Effects {
    Effects(
      clock: StandingClock(),
      randomness: SeededRandomness(seed: 5),
      tasks: PoolTaskSpawner()
    )
  }

  @Test("A record that was parked is fetched although another zone fails")
  func parkedRecord() async throws {
    let service = try await RealService()
    let writer = try await service.device("writer").privateCloudDatabase
    try await save("second", on: writer, bytes: "the bytes")
    service.intercept { request in
      guard request.method == "GET", request.path.contains("/assets/") else { return nil }
      return Self.failure(404, "NOT_FOUND")
    }
    let notes = SyncedNotes()
    let engine = notes.engine(on: try await service.device("reader"))
    await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    #expect(notes.texts.isEmpty)
    try await save("first", on: writer)
    service.intercept { request in
      Self.isZone("first", request) ? Self.failure(500, "INTERNAL_ERROR") : nil
    }
    await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    #expect(notes.texts == ["second": "second"])
  }

  @Test("A zone that takes too long to read does not keep the other zones from being fetched")
  func slowZone() async throws {
    let service = try await RealService()
    let writer = try await service.device("writer").privateCloudDatabase
    for name in ["first", "second"] { try await save(name, on: writer) }
    service.intercept { request in
      Self.isZone("first", request) ? Self.failure(503, "TRY_AGAIN_LATER") : nil
    }
    let notes = SyncedNotes()
    let engine = notes.engine(on: try await service.device("reader", effects: effects))
    for _ in 0..<2 { await #expect(throws: CKError.self) { try await engine.fetchChanges() } }
    #expect(notes.texts == ["second": "second"])
  }

  @Test("Changes are fetched although the service does not list the subscriptions")
  func subscriptions() async throws {
    let service = try await RealService()
    let writer = try await service.device("writer").privateCloudDatabase
    try await save("first", on: writer)
    service.intercept { request in
      request.path.contains("subscriptions/list") ? Self.failure(503, "TRY_AGAIN_LATER") : nil
    }
    let notes = SyncedNotes()
    let engine = CKSyncEngine(
      CKSyncEngine.Configuration(
        database: try await service.device("reader", effects: effects).privateCloudDatabase,
        stateSerialization: nil,
        delegate: notes
      )
    )
    await notes.wait { $0.texts == ["first": "first"] }
    #expect(notes.texts == ["first": "first"])
    await engine.cancelOperations()
  }

  @Test(
    "An item without a name in the database's feed holds up no zone, and the feed's token stays"
  )
  func namelessItem() async throws {
    let service = try await RealService()
    let writer = try await service.device("writer").privateCloudDatabase
    for name in ["gone", "good"] { try await save(name, on: writer) }
    let notes = SyncedNotes()
    let engine = notes.engine(on: try await service.device("reader"))
    try await engine.fetchChanges()
    let tokens = Mutex<[Bool]>([])
    service.intercept { request in
      guard request.path.contains("changes/database") else { return nil }
      let isFirst = String(decoding: request.body, as: UTF8.self).contains("\"beyond\"")
      tokens.withLock { $0.append(isFirst) }
      let body = """
        {"syncToken":"beyond","zones":[{"serverErrorCode":"INTERNAL_ERROR"},
         {"zoneID":{"zoneName":"good"}},{"zoneID":{"zoneName":"gone"},"deleted":true}]}
        """
      return WebServiceResponse(status: 200, body: Data(body.utf8))
    }
    let record = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "new", zoneID: CKRecordZone.ID(zoneName: "good"))
    )
    record["text"] = "new"
    try await writer.save(record)
    notes.clearLog()
    for _ in 0..<2 { await #expect(throws: CKError.self) { try await engine.fetchChanges() } }
    #expect(notes.texts == ["gone": "gone", "good": "good", "new": "new"])
    #expect(notes.log.filter { $0.hasPrefix("zones") } == ["zones +1 -0", "zones +1 -0"])
    #expect(tokens.withLock { $0 } == [false, false])
    service.intercept(nil)
    try await engine.fetchChanges()
  }
}
