import CloudKit

/// Keeps notes in a file and lets a sync engine keep them in step: read from top to bottom.
@main
enum NotesByEngine {
  static func main() async throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    guard arguments.count > 1 else {
      return print("NotesByEngine FILE sign-in | list | add TEXT | edit OLD NEW | delete TEXT")
    }
    if arguments[1] == "sign-in" { return try await signIn() }
    let notes = Notebook(file: URL(fileURLWithPath: arguments[0]))
    var configuration = CKSyncEngine.Configuration(
      database: CKContainer.default().privateCloudDatabase,
      stateSerialization: await notes.serialization,
      delegate: notes
    )
    // A tool that ends at once says when; an app leaves it to the engine.
    configuration.automaticallySync = false
    let engine = CKSyncEngine(configuration)
    guard await notes.change(arguments[1], Array(arguments.dropFirst(2))) else {
      return print("There is no such note, or no such command.")
    }
    await notes.tellPending(engine)
    do {
      try await sync(engine)
    } catch let error as CKError {
      print("Not in step yet: \(error.localizedDescription)")
    }
    for text in await notes.texts { print(text) }
  }

  private static func sync(_ engine: CKSyncEngine) async throws {
    try await engine.fetchChanges()
    do {
      try await engine.sendChanges()
    } catch CKError.partialFailure {
      // The notebook has merged what was in conflict: once more.
      try await engine.sendChanges()
    }
  }

  /// Signs the person in on another screen.
  private static func signIn() async throws {
    let signIn = try await CKContainer.default().beginDeviceSignIn()
    print("Open \(signIn.verificationURL.absoluteString) and type \(signIn.userCode)")
    try await signIn.wait()
    print("You are signed in.")
  }
}

/// The notes, and the engine's questions about them.
actor Notebook: CKSyncEngineDelegate {
  static let zoneID = CKRecordZone.ID(zoneName: "Notes")

  private struct Contents: Codable {
    var texts: [String: String] = [:]
    /// Archived system fields, by record name.
    var systemFields: [String: Data] = [:]
    /// The names of notes that were written, or deleted, here and not yet there.
    ///
    /// The engine keeps them too; this tool may end before it has handed over its state.
    var changed: Set<String> = []
    var deleted: Set<String> = []
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

  func change(_ command: String, _ arguments: [String]) -> Bool {
    func name(_ text: String?) -> String? { contents.texts.first { $0.value == text }?.key }
    switch command {
    case "list":
      return true
    case "add":
      let name = UUID().uuidString
      contents.texts[name] = arguments.joined(separator: " ")
      contents.changed.insert(name)
    case "edit":
      guard arguments.count == 2, let name = name(arguments[0]) else { return false }
      contents.texts[name] = arguments[1]
      contents.changed.insert(name)
    case "delete":
      guard let name = name(arguments.first) else { return false }
      contents.texts[name] = nil
      contents.changed.remove(name)
      if contents.systemFields.removeValue(forKey: name) != nil { contents.deleted.insert(name) }
    default:
      return false
    }
    save()
    return true
  }

  /// Tells the engine what is to be sent.
  func tellPending(_ engine: CKSyncEngine) {
    guard !contents.changed.isEmpty || !contents.deleted.isEmpty else { return }
    engine.state.add(pendingDatabaseChanges: [.saveZone(CKRecordZone(zoneID: Self.zoneID))])
    engine.state.add(
      pendingRecordZoneChanges: contents.changed.map { .saveRecord(recordID($0)) }
        + contents.deleted.map { .deleteRecord(recordID($0)) }
    )
  }

  private func recordID(_ name: String) -> CKRecord.ID {
    CKRecord.ID(recordName: name, zoneID: Self.zoneID)
  }

  func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) {
    switch event {
    case .stateUpdate(let update):
      contents.state = update.stateSerialization
    case .accountChange(let change):
      // What was written before the first sign-in is the person's who signs in.
      if case .signIn = change.changeType { break }
      contents = Contents()
    case .fetchedDatabaseChanges(let changes):
      if changes.deletions.contains(where: { $0.zoneID == Self.zoneID }) {
        contents.texts = contents.texts.filter { contents.changed.contains($0.key) }
        contents.systemFields = [:]
        contents.deleted = []
      }
    case .fetchedRecordZoneChanges(let changes):
      for modification in changes.modifications { merge(modification.record) }
      for deletion in changes.deletions { forget(deletion.recordID.recordName) }
    case .sentRecordZoneChanges(let sent):
      for record in sent.savedRecords {
        contents.changed.remove(record.recordID.recordName)
        take(record)
      }
      for recordID in sent.deletedRecordIDs { contents.deleted.remove(recordID.recordName) }
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

  /// Takes over a record; where both sides changed a note, this side's text wins.
  private func merge(_ record: CKRecord) {
    let name = record.recordID.recordName
    guard !contents.deleted.contains(name) else { return }
    if contents.changed.contains(name) {
      contents.systemFields[name] = Self.systemFields(of: record)
    } else {
      take(record)
    }
  }

  private func take(_ record: CKRecord) {
    contents.texts[record.recordID.recordName] = record["text"]
    contents.systemFields[record.recordID.recordName] = Self.systemFields(of: record)
  }

  /// A note that is gone there is gone here, unless somebody just wrote on it.
  private func forget(_ name: String) {
    if !contents.changed.contains(name) { contents.texts[name] = nil }
    contents.systemFields[name] = nil
    contents.deleted.remove(name)
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
