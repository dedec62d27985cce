import Foundation
import OpenCloudKit
import Synchronization

/// An app that stores notes and syncs them with a sync engine, in the style of Apple's sample.
final class SyncedNotes: CKSyncEngineDelegate {
  static let zoneID = CKRecordZone.ID(zoneName: "notes")

  struct Contents: Sendable {
    var texts: [String: String] = [:]
    var records: [String: CKRecord] = [:]
    var serialization: CKSyncEngine.State.Serialization?
    var log: [String] = []
    var accountChanges: [CKSyncEngine.Event.AccountChange.ChangeType] = []
    /// Runs once, when the next batch is requested: an edit of the user during a send.
    var meanwhile: (@Sendable (CKSyncEngine) -> Void)?
    var isAtomic = false
    /// Whether the delegate keeps changes without a record pending.
    var keepsPending = false
    var prioritized: [CKRecordZone.ID] = []
  }

  private let contents = Mutex(Contents())
  /// Yields once for each handled event.
  private let handled = AsyncStream<Void>.makeStream()

  var texts: [String: String] { contents.withLock { $0.texts } }
  var log: [String] { contents.withLock { $0.log } }
  var serialization: CKSyncEngine.State.Serialization? { contents.withLock { $0.serialization } }
  var accountChanges: [CKSyncEngine.Event.AccountChange.ChangeType] {
    contents.withLock { $0.accountChanges }
  }

  func record(_ name: String) -> CKRecord? { contents.withLock { $0.records[name] } }

  func change(_ body: (inout Contents) -> Void) { contents.withLock { body(&$0) } }

  func clearLog() { contents.withLock { $0.log = [] } }

  static func recordID(_ name: String) -> CKRecord.ID {
    CKRecord.ID(recordName: name, zoneID: zoneID)
  }

  /// Writes a note, as the user does.
  func write(_ name: String, _ text: String, on engine: CKSyncEngine) {
    contents.withLock { $0.texts[name] = text }
    engine.state.add(pendingRecordZoneChanges: [.saveRecord(Self.recordID(name))])
  }

  /// Deletes a note, as the user does.
  func remove(_ name: String, on engine: CKSyncEngine) {
    contents.withLock { contents in
      contents.texts[name] = nil
      contents.records[name] = nil
    }
    engine.state.add(pendingRecordZoneChanges: [.deleteRecord(Self.recordID(name))])
  }

  /// An engine with these notes as its delegate, which sends and fetches only when a test calls it.
  func engine(
    on container: CKContainer,
    state: CKSyncEngine.State.Serialization? = nil
  ) -> CKSyncEngine {
    var configuration = CKSyncEngine.Configuration(
      database: container.privateCloudDatabase,
      stateSerialization: state,
      delegate: self
    )
    configuration.automaticallySync = false
    return CKSyncEngine(configuration)
  }

  /// Waits until the contents satisfy a condition, checking it after each event.
  func wait(until isSo: @Sendable (Contents) -> Bool) async {
    if contents.withLock({ isSo($0) }) { return }
    for await _ in handled.stream where contents.withLock({ isSo($0) }) { return }
  }

  // MARK: The delegate

  func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) async {
    contents.withLock { $0.log.append(Self.word(event)) }
    defer { handled.continuation.yield() }
    switch event {
    case .stateUpdate(let update):
      contents.withLock { $0.serialization = update.stateSerialization }
    case .accountChange(let change):
      contents.withLock { contents in
        contents.accountChanges.append(change.changeType)
        if case .signIn = change.changeType { return }
        contents.texts = [:]
        contents.records = [:]
      }
    case .fetchedDatabaseChanges(let changes):
      guard changes.deletions.contains(where: { $0.zoneID == Self.zoneID }) else { return }
      contents.withLock { contents in
        contents.texts = [:]
        contents.records = [:]
      }
    case .fetchedRecordZoneChanges(let changes):
      contents.withLock { contents in
        for modification in changes.modifications { Self.take(modification.record, &contents) }
        for deletion in changes.deletions {
          contents.texts[deletion.recordID.recordName] = nil
          contents.records[deletion.recordID.recordName] = nil
        }
      }
    case .sentRecordZoneChanges(let sent):
      didSend(sent, syncEngine)
    default:
      break
    }
  }

  private static func take(_ record: CKRecord, _ contents: inout Contents) {
    contents.texts[record.recordID.recordName] = record["text"]
    contents.records[record.recordID.recordName] = record
  }

  private func didSend(
    _ sent: CKSyncEngine.Event.SentRecordZoneChanges,
    _ engine: CKSyncEngine
  ) {
    var zones: [CKSyncEngine.PendingDatabaseChange] = []
    var again: [CKSyncEngine.PendingRecordZoneChange] = []
    contents.withLock { contents in
      for record in sent.savedRecords { contents.records[record.recordID.recordName] = record }
      for failure in sent.failedRecordSaves {
        let recordID = failure.record.recordID
        switch failure.error.code {
        case .serverRecordChanged:
          guard let server = failure.error.serverRecord else { continue }
          contents.records[recordID.recordName] = server
          again.append(.saveRecord(recordID))
        case .zoneNotFound:
          zones.append(.saveZone(CKRecordZone(zoneID: recordID.zoneID)))
          contents.records[recordID.recordName] = nil
          again.append(.saveRecord(recordID))
        case .unknownItem:
          contents.records[recordID.recordName] = nil
          again.append(.saveRecord(recordID))
        default:
          break
        }
      }
    }
    engine.state.add(pendingDatabaseChanges: zones)
    engine.state.add(pendingRecordZoneChanges: again)
  }

  func nextRecordZoneChangeBatch(
    _ context: CKSyncEngine.SendChangesContext,
    syncEngine: CKSyncEngine
  ) async -> CKSyncEngine.RecordZoneChangeBatch? {
    let scope = context.options.scope
    let changes = syncEngine.state.pendingRecordZoneChanges.filter { scope.contains($0) }
    var batch = await CKSyncEngine.RecordZoneChangeBatch(pendingChanges: changes) { recordID in
      let (text, known) = self.contents.withLock {
        ($0.texts[recordID.recordName], $0.records[recordID.recordName])
      }
      guard let text else {
        if !self.contents.withLock({ $0.keepsPending }) {
          syncEngine.state.remove(pendingRecordZoneChanges: [.saveRecord(recordID)])
        }
        return nil
      }
      let record = known ?? CKRecord(recordType: "Note", recordID: recordID)
      record["text"] = text
      return record
    }
    batch?.atomicByZone = contents.withLock { $0.isAtomic }
    let meanwhile = contents.withLock { contents in
      defer { contents.meanwhile = nil }
      return contents.meanwhile
    }
    meanwhile?(syncEngine)
    return batch
  }

  func nextFetchChangesOptions(
    _ context: CKSyncEngine.FetchChangesContext,
    syncEngine: CKSyncEngine
  ) async -> CKSyncEngine.FetchChangesOptions {
    var options = context.options
    options.prioritizedZoneIDs = contents.withLock { $0.prioritized }
    return options
  }

  /// A short text for the event.
  private static func word(_ event: CKSyncEngine.Event) -> String {
    switch event {
    case .stateUpdate: "state"
    case .accountChange: "account"
    case .willFetchChanges(let event): "will fetch (\(event.context.reason))"
    case .fetchedDatabaseChanges(let event):
      "zones +\(event.modifications.count) -\(event.deletions.count)"
    case .willFetchRecordZoneChanges(let event): "will fetch \(event.zoneID.zoneName)"
    case .fetchedRecordZoneChanges(let event):
      "records +\(event.modifications.count) -\(event.deletions.count)"
    case .didFetchRecordZoneChanges(let event):
      "did fetch \(event.zoneID.zoneName)" + (event.error.map { " \($0.code)" } ?? "")
    case .didFetchChanges: "did fetch"
    case .willSendChanges(let event): "will send (\(event.context.reason))"
    case .sentDatabaseChanges(let event):
      "sent zones +\(event.savedZones.count) -\(event.deletedZoneIDs.count) "
        + "!\(event.failedZoneSaves.count + event.failedZoneDeletes.count)"
    case .sentRecordZoneChanges(let event):
      "sent records +\(event.savedRecords.count) -\(event.deletedRecordIDs.count) "
        + "!\(event.failedRecordSaves.count + event.failedRecordDeletes.count)"
    case .didSendChanges: "did send"
    }
  }
}
