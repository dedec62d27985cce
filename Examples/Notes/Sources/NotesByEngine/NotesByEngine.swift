import CloudKit

/// Keeps notes in a file and lets a sync engine keep them in step: read from top to bottom.
@main
enum NotesByEngine {
  static func main() async throws {
    let arguments = CommandLine.arguments.dropFirst()
    guard let path = arguments.first else { return print("NotesByEngine FILE [add TEXT | list]") }
    let notes = Notebook(file: URL(fileURLWithPath: path))
    var configuration = CKSyncEngine.Configuration(
      database: CKContainer.default().privateCloudDatabase,
      stateSerialization: await notes.serialization,
      delegate: notes
    )
    // A tool that ends at once says when; an app leaves it to the engine.
    configuration.automaticallySync = false
    let engine = CKSyncEngine(configuration)
    if arguments.dropFirst().first == "add" {
      await notes.add(arguments.dropFirst(2).joined(separator: " "), to: engine)
    }
    try await engine.fetchChanges()
    do {
      try await engine.sendChanges()
    } catch CKError.partialFailure {
      // The notebook has merged what was in conflict: once more.
      try await engine.sendChanges()
    }
    for text in await notes.texts { print(text) }
  }
}

/// The notes, and the engine's questions about them.
actor Notebook: CKSyncEngineDelegate {
  static let zoneID = CKRecordZone.ID(zoneName: "Notes")

  private struct Contents: Codable {
    var texts: [String: String] = [:]
    /// Archived system fields, by record name.
    var systemFields: [String: Data] = [:]
    var state: CKSyncEngine.State.Serialization?
  }

  private let file: URL
  private var contents: Contents

  init(file: URL) {
    self.file = file
    let data = try? Data(contentsOf: file)
    contents = data.flatMap { try? JSONDecoder().decode(Contents.self, from: $0) } ?? Contents()
  }

  var serialization: CKSyncEngine.State.Serialization? { contents.state }
  var texts: [String] { contents.texts.values.sorted() }

  func add(_ text: String, to engine: CKSyncEngine) {
    let recordID = CKRecord.ID(recordName: UUID().uuidString, zoneID: Self.zoneID)
    contents.texts[recordID.recordName] = text
    save()
    engine.state.add(pendingDatabaseChanges: [.saveZone(CKRecordZone(zoneID: Self.zoneID))])
    engine.state.add(pendingRecordZoneChanges: [.saveRecord(recordID)])
  }

  func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) {
    switch event {
    case .stateUpdate(let update):
      contents.state = update.stateSerialization
    case .accountChange(let change):
      if case .signIn = change.changeType { break }
      contents = Contents()
    case .fetchedDatabaseChanges(let changes):
      if changes.deletions.contains(where: { $0.zoneID == Self.zoneID }) {
        contents.texts = [:]
        contents.systemFields = [:]
      }
    case .fetchedRecordZoneChanges(let changes):
      for modification in changes.modifications { take(modification.record) }
      for deletion in changes.deletions { forget(deletion.recordID.recordName) }
    case .sentRecordZoneChanges(let sent):
      for record in sent.savedRecords { take(record) }
      for failure in sent.failedRecordSaves { mend(failure, syncEngine) }
    default:
      break
    }
    save()
  }

  func nextRecordZoneChangeBatch(
    _ context: CKSyncEngine.SendChangesContext,
    syncEngine: CKSyncEngine
  ) async -> CKSyncEngine.RecordZoneChangeBatch? {
    let scope = context.options.scope
    let changes = syncEngine.state.pendingRecordZoneChanges.filter { scope.contains($0) }
    let contents = contents
    return await CKSyncEngine.RecordZoneChangeBatch(pendingChanges: changes) { recordID in
      guard let text = contents.texts[recordID.recordName] else {
        syncEngine.state.remove(pendingRecordZoneChanges: [.saveRecord(recordID)])
        return nil
      }
      let known = contents.systemFields[recordID.recordName].flatMap(Self.record)
      let record = known ?? CKRecord(recordType: "Note", recordID: recordID)
      record["text"] = text
      return record
    }
  }

  /// What only the app can decide: of two texts the one written here wins.
  private func mend(
    _ failure: CKSyncEngine.Event.SentRecordZoneChanges.FailedRecordSave,
    _ engine: CKSyncEngine
  ) {
    let recordID = failure.record.recordID
    switch failure.error.code {
    case .serverRecordChanged:
      guard let server = failure.error.serverRecord else { return }
      contents.systemFields[recordID.recordName] = Self.systemFields(of: server)
    case .zoneNotFound:
      contents.systemFields[recordID.recordName] = nil
      engine.state.add(
        pendingDatabaseChanges: [.saveZone(CKRecordZone(zoneID: recordID.zoneID))]
      )
    case .unknownItem:
      contents.systemFields[recordID.recordName] = nil
    default:
      return
    }
    engine.state.add(pendingRecordZoneChanges: [.saveRecord(recordID)])
  }

  private func take(_ record: CKRecord) {
    contents.texts[record.recordID.recordName] = record["text"]
    contents.systemFields[record.recordID.recordName] = Self.systemFields(of: record)
  }

  private func forget(_ name: String) {
    contents.texts[name] = nil
    contents.systemFields[name] = nil
  }

  private func save() {
    do {
      try JSONEncoder().encode(contents).write(to: file, options: .atomic)
    } catch {
      print("The notes can't be kept: \(error)")
    }
  }

  private static func systemFields(of record: CKRecord) -> Data {
    let coder = NSKeyedArchiver(requiringSecureCoding: true)
    record.encodeSystemFields(with: coder)
    coder.finishEncoding()
    return coder.encodedData
  }

  @Sendable private static func record(_ systemFields: Data) -> CKRecord? {
    guard let coder = try? NSKeyedUnarchiver(forReadingFrom: systemFields) else { return nil }
    coder.requiresSecureCoding = true
    return CKRecord(coder: coder)
  }
}
