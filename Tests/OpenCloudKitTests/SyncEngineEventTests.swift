import CloudKitServer
import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization
import Testing

/// What Apple's documentation says of each event of a sync engine.
@Suite("The events of a sync engine")
struct SyncEngineEventTests {
  /// A delegate that keeps every event, with what was pending when it came.
  private final class Keeper: CKSyncEngineDelegate {
    struct Kept: Sendable {
      var event: CKSyncEngine.Event
      var pendingRecords: [CKSyncEngine.PendingRecordZoneChange]
      var pendingZones: [CKSyncEngine.PendingDatabaseChange]
    }

    private let kept = Mutex<[Kept]>([])
    private let records = Mutex<[CKRecord.ID: CKRecord]>([:])

    var all: [Kept] { kept.withLock { $0 } }
    func clear() { kept.withLock { $0 = [] } }

    func save(_ record: CKRecord, on engine: CKSyncEngine) {
      records.withLock { $0[record.recordID] = record }
      engine.state.add(pendingRecordZoneChanges: [.saveRecord(record.recordID)])
    }

    func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) async {
      let now = Kept(
        event: event,
        pendingRecords: syncEngine.state.pendingRecordZoneChanges,
        pendingZones: syncEngine.state.pendingDatabaseChanges
      )
      kept.withLock { $0.append(now) }
    }

    func nextRecordZoneChangeBatch(
      _ context: CKSyncEngine.SendChangesContext,
      syncEngine: CKSyncEngine
    ) async -> CKSyncEngine.RecordZoneChangeBatch? {
      let scope = context.options.scope
      let changes = syncEngine.state.pendingRecordZoneChanges.filter { scope.contains($0) }
      return await CKSyncEngine.RecordZoneChangeBatch(pendingChanges: changes) { recordID in
        self.records.withLock { $0[recordID] }
      }
    }
  }

  private static let zoneID = CKRecordZone.ID(zoneName: "notes")

  private func recordID(_ name: String) -> CKRecord.ID {
    CKRecord.ID(recordName: name, zoneID: Self.zoneID)
  }

  private func engine(_ container: CKContainer, _ keeper: Keeper) -> CKSyncEngine {
    var configuration = CKSyncEngine.Configuration(
      database: container.privateCloudDatabase,
      stateSerialization: nil,
      delegate: keeper
    )
    configuration.automaticallySync = false
    return CKSyncEngine(configuration)
  }

  private func withZone(
    _ body: (RealService, CKSyncEngine, Keeper) async throws -> Void
  ) async throws {
    let service = try await RealService()
    let keeper = Keeper()
    let engine = engine(try await service.device("one"), keeper)
    engine.state.add(pendingDatabaseChanges: [.saveZone(CKRecordZone(zoneID: Self.zoneID))])
    try await engine.sendChanges()
    try await engine.fetchChanges()
    keeper.clear()
    try await body(service, engine, keeper)
  }

  @Test(
    "A zone's deletion comes with its reason: by an app, by the user, or with encrypted data",
    arguments: [
      (StoredZone.Ending.deleted, CKDatabase.DatabaseChange.Deletion.Reason.deleted),
      (.purged, .purged), (.userDeleted, .purged), (.encryptedDataReset, .encryptedDataReset),
    ]
  )
  func reasons(
    ending: StoredZone.Ending,
    reason: CKDatabase.DatabaseChange.Deletion.Reason
  ) async throws {
    try await withZone { service, engine, keeper in
      let user = try await engine.database.container.userRecordID().recordName
      try await service.service.zones.end(
        named: Self.zoneID.zoneName,
        container: "iCloud.test",
        environment: .development,
        userRecordName: user,
        ending: ending
      )
      try await engine.fetchChanges()
      let deletions = keeper.all.flatMap { kept -> [CKDatabase.DatabaseChange.Deletion] in
        if case .fetchedDatabaseChanges(let changes) = kept.event { changes.deletions } else { [] }
      }
      #expect(deletions.map(\.zoneID.zoneName) == [Self.zoneID.zoneName])
      #expect(deletions.map(\.reason) == [reason])
    }
  }

  @Test("Zones that could not be saved or deleted are named with their errors, and not pending")
  func failedZones() async throws {
    try await withZone { _, engine, keeper in
      let bad = CKRecordZone(zoneName: String(repeating: "x", count: 300))
      let missing = CKRecordZone.ID(zoneName: "missing")
      engine.state.add(pendingDatabaseChanges: [
        .saveZone(bad), .saveZone(CKRecordZone(zoneName: "good")), .deleteZone(missing),
      ])
      await #expect(throws: CKError.self) { try await engine.sendChanges() }
      let sent = keeper.all.compactMap { kept -> CKSyncEngine.Event.SentDatabaseChanges? in
        if case .sentDatabaseChanges(let changes) = kept.event { changes } else { nil }
      }
      #expect(sent.flatMap(\.savedZones).map(\.zoneID.zoneName) == ["good"])
      #expect(sent.flatMap(\.failedZoneSaves).map(\.zone.zoneID) == [bad.zoneID])
      #expect(sent.flatMap { $0.failedZoneDeletes.keys } == [missing])
      #expect(sent.flatMap(\.deletedZoneIDs).isEmpty)
      #expect(engine.state.pendingDatabaseChanges.isEmpty)
    }
  }

  @Test("A record that could not be deleted is named with its error, and not pending")
  func failedDelete() async throws {
    try await withZone { service, engine, keeper in
      let record = CKRecord(recordType: "Note", recordID: recordID("a"))
      _ = try await engine.database.save(record)
      service.intercept { request in
        guard request.path.contains("records/modify") else { return nil }
        let body = """
          {"records":[{"recordName":"a","serverErrorCode":"VALIDATING_REFERENCE_ERROR",
           "reason":"another record refers to the record 'a'"}]}
          """
        return WebServiceResponse(status: 200, body: Data(body.utf8))
      }
      engine.state.add(pendingRecordZoneChanges: [.deleteRecord(record.recordID)])
      await #expect(throws: CKError.self) { try await engine.sendChanges() }
      service.intercept(nil)
      let sent = keeper.all.compactMap { kept -> CKSyncEngine.Event.SentRecordZoneChanges? in
        if case .sentRecordZoneChanges(let changes) = kept.event { changes } else { nil }
      }
      #expect(sent.flatMap { $0.failedRecordDeletes.keys } == [record.recordID])
      #expect(sent.flatMap { $0.failedRecordDeletes.values }.map(\.code) == [.referenceViolation])
      #expect(sent.flatMap(\.deletedRecordIDs).isEmpty)
      #expect(engine.state.pendingRecordZoneChanges.isEmpty)
    }
  }

  @Test("A sent change is no longer pending when its event arrives, and records have their tags")
  func settledFirst() async throws {
    try await withZone { _, engine, keeper in
      let zone = CKRecordZone(zoneName: "second")
      engine.state.add(pendingDatabaseChanges: [.saveZone(zone)])
      keeper.save(CKRecord(recordType: "Note", recordID: recordID("a")), on: engine)
      try await engine.sendChanges()
      for kept in keeper.all {
        switch kept.event {
        case .sentDatabaseChanges: #expect(kept.pendingZones.isEmpty)
        case .sentRecordZoneChanges(let sent):
          #expect(kept.pendingRecords.isEmpty)
          #expect(sent.savedRecords.map { $0.recordChangeTag != nil } == [true])
        default: continue
        }
      }
    }
  }

  @Test("A fetch that fails ends with its events, and the zone's event has the error")
  func failedFetch() async throws {
    try await withZone { service, engine, keeper in
      _ = try await engine.database.save(
        CKRecord(recordType: "Note", recordID: recordID("a"))
      )
      service.intercept { request in
        request.path.contains("changes/zone")
          ? WebServiceResponse(status: 500, body: Data()) : nil
      }
      await #expect(throws: CKError.self) { try await engine.fetchChanges() }
      service.intercept(nil)
      let words = keeper.all.compactMap { kept -> String? in
        switch kept.event {
        case .willFetchChanges: "will"
        case .willFetchRecordZoneChanges: "will zone"
        case .didFetchRecordZoneChanges(let event): event.error == nil ? "did" : "did fail"
        case .didFetchChanges: "end"
        default: nil
        }
      }
      #expect(words == ["will", "will zone", "did fail", "end"])
      keeper.clear()
      try await engine.fetchChanges()
      let names = keeper.all.flatMap { kept -> [String] in
        guard case .fetchedRecordZoneChanges(let event) = kept.event else { return [] }
        return event.modifications.map(\.record.recordID.recordName)
      }
      #expect(names == ["a"])
    }
  }

  @Test("Every state that an engine gave leads a later engine to the same records")
  func everyState() async throws {
    let service = try await RealService()
    let writer = SyncedNotes()
    var configuration = CKSyncEngine.Configuration(
      database: try await service.device("writer").privateCloudDatabase,
      stateSerialization: nil,
      delegate: writer
    )
    configuration.automaticallySync = false
    let writing = CKSyncEngine(configuration)
    writing.state.add(
      pendingDatabaseChanges: [.saveZone(CKRecordZone(zoneID: SyncedNotes.zoneID))]
    )
    /// What the reader's app has kept beside each state.
    var kept: [(CKSyncEngine.State.Serialization?, [String: String])] = [(nil, [:])]
    for round in 0..<5 {
      writer.write("note \(round % 3)", "text \(round)", on: writing)
      if round == 3 { writer.remove("note 1", on: writing) }
      try await writing.sendChanges()
      let (state, texts) = kept[kept.count - 1]
      let reader = try await reader(of: service, state, texts)
      kept.append((reader.serialization, reader.texts))
    }
    for (state, texts) in kept {
      let reader = try await reader(of: service, state, texts)
      #expect(reader.texts == writer.texts)
    }
  }

  /// An app that was started with a state and notes, after a fetch.
  private func reader(
    of service: RealService,
    _ state: CKSyncEngine.State.Serialization?,
    _ texts: [String: String]
  ) async throws -> SyncedNotes {
    let notes = SyncedNotes()
    notes.change { contents in
      contents.texts = texts
      contents.serialization = state
    }
    var configuration = CKSyncEngine.Configuration(
      database: try await service.device("reader").privateCloudDatabase,
      stateSerialization: state,
      delegate: notes
    )
    configuration.automaticallySync = false
    let engine = CKSyncEngine(configuration)
    try await engine.fetchChanges()
    return notes
  }
}
