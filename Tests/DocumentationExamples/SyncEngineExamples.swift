import CloudKit
import CloudKitTesting
import Foundation
import Testing

// example: CKSyncEngineDelegate
actor NoteSync: CKSyncEngineDelegate {
  private(set) var texts: [CKRecord.ID: String] = [:]
  private(set) var state: CKSyncEngine.State.Serialization?

  func write(_ text: String, to recordID: CKRecord.ID) { texts[recordID] = text }

  func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) {
    switch event {
    case .stateUpdate(let update):
      state = update.stateSerialization  // write it to disk with the texts
    case .fetchedRecordZoneChanges(let changes):
      for modification in changes.modifications {
        texts[modification.record.recordID] = modification.record["text"]
      }
      for deletion in changes.deletions { texts[deletion.recordID] = nil }
    default:
      break
    }
  }

  func nextRecordZoneChangeBatch(
    _ context: CKSyncEngine.SendChangesContext,
    syncEngine: CKSyncEngine
  ) async -> CKSyncEngine.RecordZoneChangeBatch? {
    let scope = context.options.scope
    let changes = syncEngine.state.pendingRecordZoneChanges.filter { scope.contains($0) }
    let texts = texts
    return await CKSyncEngine.RecordZoneChangeBatch(pendingChanges: changes) { recordID in
      guard let text = texts[recordID] else { return nil }
      let record = CKRecord(recordType: "Note", recordID: recordID)
      record["text"] = text
      return record
    }
  }
}
// end

@Suite("Examples: the sync engine")
struct SyncEngineExamples {
  @Test("A note that one engine sends is fetched by the engine of another device")
  func engine() async throws {
    let cloud = try await TestCloud()
    let database = try await cloud.container(device: "phone").privateCloudDatabase
    let notes = NoteSync()
    // example: CKSyncEngine
    var configuration = CKSyncEngine.Configuration(
      database: database,
      stateSerialization: await notes.state,
      delegate: notes
    )
    configuration.automaticallySync = false  // for tests and tools; an app leaves it on
    let engine = CKSyncEngine(configuration)

    let zone = CKRecordZone(zoneName: "Notes")
    let noteID = CKRecord.ID(recordName: "note-1", zoneID: zone.zoneID)
    await notes.write("Buy milk", to: noteID)
    engine.state.add(pendingDatabaseChanges: [.saveZone(zone)])
    engine.state.add(pendingRecordZoneChanges: [.saveRecord(noteID)])
    try await engine.sendChanges()
    // end

    let others = NoteSync()
    let laptop = try await cloud.container(device: "laptop").privateCloudDatabase
    var second = CKSyncEngine.Configuration(
      database: laptop,
      stateSerialization: nil,
      delegate: others
    )
    second.automaticallySync = false
    try await CKSyncEngine(second).fetchChanges()
    #expect(await others.texts == [noteID: "Buy milk"])
    await cloud.shutdown()
  }
}
