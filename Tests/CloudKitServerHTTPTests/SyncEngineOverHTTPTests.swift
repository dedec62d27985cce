import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("Sync engines over sockets")
struct SyncEngineOverHTTPTests {
  private static let zoneID = CKRecordZone.ID(zoneName: "notes")

  /// Texts by record name, with a stream of events.
  private final class Notes: CKSyncEngineDelegate {
    private let texts = Mutex<[String: String]>([:])
    private let handled = AsyncStream<Void>.makeStream()

    func write(_ name: String, _ text: String, on engine: CKSyncEngine) {
      texts.withLock { $0[name] = text }
      let recordID = CKRecord.ID(recordName: name, zoneID: SyncEngineOverHTTPTests.zoneID)
      engine.state.add(pendingRecordZoneChanges: [.saveRecord(recordID)])
    }

    func wait(for wanted: [String: String]) async {
      if texts.withLock({ $0 == wanted }) { return }
      for await _ in handled.stream where texts.withLock({ $0 == wanted }) { return }
    }

    func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) async {
      if case .fetchedRecordZoneChanges(let changes) = event {
        texts.withLock { texts in
          for modification in changes.modifications {
            texts[modification.record.recordID.recordName] = modification.record["text"]
          }
          for deletion in changes.deletions { texts[deletion.recordID.recordName] = nil }
        }
      }
      handled.continuation.yield()
    }

    func nextRecordZoneChangeBatch(
      _ context: CKSyncEngine.SendChangesContext,
      syncEngine: CKSyncEngine
    ) async -> CKSyncEngine.RecordZoneChangeBatch? {
      let changes = syncEngine.state.pendingRecordZoneChanges
      return await CKSyncEngine.RecordZoneChangeBatch(pendingChanges: changes) { recordID in
        let record = CKRecord(recordType: "Note", recordID: recordID)
        record["text"] = self.texts.withLock { $0[recordID.recordName] }
        return record
      }
    }
  }

  private func engine(_ cloud: TestCloud, _ name: String, _ notes: Notes) -> CKSyncEngine {
    let container = CKContainer(
      identifier: TestCloud.container,
      configuration: CKContainerConfiguration(
        url: URL(string: cloud.url),
        apiToken: cloud.apiToken,
        webAuthToken: cloud.webAuthToken
      ),
      clientIdentifier: name
    )
    return CKSyncEngine(
      CKSyncEngine.Configuration(
        database: container.privateCloudDatabase,
        stateSerialization: nil,
        delegate: notes
      )
    )
  }

  @Test("Records that one process writes are synced to another automatically")
  func automatic() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        let phone = Notes()
        let laptop = Notes()
        let one = engine(cloud, "phone", phone)
        let two = engine(cloud, "laptop", laptop)
        one.state.add(pendingDatabaseChanges: [.saveZone(CKRecordZone(zoneID: Self.zoneID))])
        phone.write("a", "first", on: one)
        await laptop.wait(for: ["a": "first"])
        laptop.write("b", "second", on: two)
        await phone.wait(for: ["a": "first", "b": "second"])
        await one.cancelOperations()
        await two.cancelOperations()
      }
    }
  }

  @Test("A large file is sent in pieces, with progress of its record")
  func progress() async throws {
    try await withTemporaryFolder { folder in
      let file = folder.appendingPathComponent("film")
      let bytes = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
      try bytes.write(to: file)
      try await TestCloud.run(in: folder.appendingPathComponent("server")) { cloud in
        let container = CKContainer(
          identifier: TestCloud.container,
          configuration: CKContainerConfiguration(
            url: URL(string: cloud.url),
            apiToken: cloud.apiToken,
            webAuthToken: cloud.webAuthToken
          )
        )
        let database = container.privateCloudDatabase
        try await database.save(CKRecordZone(zoneID: Self.zoneID))
        let recordID = CKRecord.ID(recordName: "film", zoneID: Self.zoneID)
        let record = CKRecord(recordType: "Film", recordID: recordID)
        record["film"] = CKAsset(fileURL: file)
        let operation = CKModifyRecordsOperation(recordsToSave: [record])
        let sent = Mutex<[Double]>([])
        operation.perRecordProgressBlock = { _, fraction in
          sent.withLock { $0.append(fraction) }
        }
        await withCheckedContinuation { continuation in
          operation.completionBlock = { continuation.resume() }
          database.add(operation)
        }
        let fractions = sent.withLock { $0 }
        #expect(fractions.count > 3)
        #expect(fractions == fractions.sorted())
        #expect(fractions.last == 1)
        let copy = try await database.record(for: recordID)
        let url = try #require((copy["film"] as? CKAsset)?.fileURL)
        #expect(try Data(contentsOf: url) == bytes)
      }
    }
  }
}
