import CloudKit

/// Keeps notes in a file and in step with CloudKit by hand: read from top to bottom.
@main
struct NotesByHand {
  private static let zoneID = CKRecordZone.ID(zoneName: "Notes")
  private let database = CKContainer.default().privateCloudDatabase
  private let file: URL
  private var contents: Contents

  /// What is kept between two runs.
  private struct Contents: Codable {
    var notes: [String: Note] = [:]
    /// The names of notes that were deleted here and not yet there.
    var deleted: Set<String> = []
    /// How far the zone's changes were read: an archived `CKServerChangeToken`.
    var token: Data?
  }

  private struct Note: Codable {
    var text: String
    /// What the service knows of the record: archived system fields.
    var systemFields: Data?
    var isChanged = true
  }

  static func main() async throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    guard arguments.count > 1 else {
      return print("NotesByHand FILE sign-in | list | add TEXT | edit OLD NEW | delete TEXT")
    }
    if arguments[1] == "sign-in" { return try await signIn() }
    var tool = NotesByHand(file: URL(fileURLWithPath: arguments[0]))
    guard tool.change(arguments[1], Array(arguments.dropFirst(2))) else {
      return print("There is no such note, or no such command.")
    }
    // What was written here is kept first: the service may be out of reach for weeks.
    try tool.save()
    do {
      try await tool.sync()
    } catch let error as CKError {
      print("Not in step yet: \(error.localizedDescription)")
    }
    try tool.save()
    for note in tool.contents.notes.values.sorted(by: { $0.text < $1.text }) { print(note.text) }
  }

  /// Signs the person in on another screen.
  private static func signIn() async throws {
    let signIn = try await CKContainer.default().beginDeviceSignIn()
    print("Open \(signIn.verificationURL.absoluteString) and type \(signIn.userCode)")
    try await signIn.wait()
    print("You are signed in.")
  }

  private init(file: URL) {
    self.file = file
    let data = try? Data(contentsOf: file)
    contents = data.flatMap { try? JSONDecoder().decode(Contents.self, from: $0) } ?? Contents()
  }

  private func save() throws {
    try JSONEncoder().encode(contents).write(to: file, options: .atomic)
  }

  private mutating func change(_ command: String, _ texts: [String]) -> Bool {
    func name(_ text: String?) -> String? {
      contents.notes.first { $0.value.text == text }?.key
    }
    switch command {
    case "list":
      return true
    case "add":
      contents.notes[UUID().uuidString] = Note(text: texts.joined(separator: " "))
      return true
    case "edit":
      guard texts.count == 2, let name = name(texts[0]) else { return false }
      contents.notes[name]?.text = texts[1]
      contents.notes[name]?.isChanged = true
      return true
    case "delete":
      guard let name = name(texts.first) else { return false }
      if contents.notes.removeValue(forKey: name)?.systemFields != nil {
        contents.deleted.insert(name)
      }
      return true
    default:
      return false
    }
  }

  // MARK: In step

  private mutating func sync() async throws {
    // Saving a zone that is there already does no harm.
    try await database.save(CKRecordZone(zoneID: Self.zoneID))
    try await fetch()
    try await send()
  }

  /// Takes over what others changed since the last time.
  private mutating func fetch() async throws {
    var token = contents.token.flatMap {
      try? NSKeyedUnarchiver.unarchivedObject(ofClass: CKServerChangeToken.self, from: $0)
    }
    var moreComing = true
    while moreComing {
      let changes:
        (
          modificationResultsByID: [CKRecord.ID: Result<
            CKDatabase.RecordZoneChange.Modification, any Error
          >],
          deletions: [CKDatabase.RecordZoneChange.Deletion], changeToken: CKServerChangeToken,
          moreComing: Bool
        )
      do {
        changes = try await database.recordZoneChanges(inZoneWith: Self.zoneID, since: token)
      } catch CKError.changeTokenExpired {
        // The service has forgotten how far this device was: everything once more.
        token = nil
        continue
      }
      for (recordID, result) in changes.modificationResultsByID {
        merge(try result.get().record, named: recordID.recordName)
      }
      for deletion in changes.deletions { forget(deletion.recordID.recordName) }
      token = changes.changeToken
      moreComing = changes.moreComing
    }
    contents.token = try token.map {
      try NSKeyedArchiver.archivedData(withRootObject: $0, requiringSecureCoding: true)
    }
  }

  /// Takes over a record; where both sides changed a note, this side's text wins.
  private mutating func merge(_ record: CKRecord, named name: String) {
    guard !contents.deleted.contains(name) else { return }
    if contents.notes[name]?.isChanged == true {
      contents.notes[name]?.systemFields = Self.systemFields(of: record)
    } else {
      take(record, named: name)
    }
  }

  /// A note that is gone there is gone here, unless somebody just wrote on it.
  private mutating func forget(_ name: String) {
    contents.deleted.remove(name)
    if contents.notes[name]?.isChanged == true {
      contents.notes[name]?.systemFields = nil
    } else {
      contents.notes[name] = nil
    }
  }

  /// Sends what was changed here.
  private mutating func send() async throws {
    let records = contents.notes.filter(\.value.isChanged).map {
      record(of: $0.value, named: $0.key)
    }
    let deletions = contents.deleted.map { CKRecord.ID(recordName: $0, zoneID: Self.zoneID) }
    let results = try await database.modifyRecords(
      saving: records,
      deleting: deletions,
      atomically: false
    )
    for (recordID, result) in results.saveResults {
      do {
        take(try result.get(), named: recordID.recordName)
      } catch let error as CKError where error.code == .serverRecordChanged {
        // Somebody was faster, between our fetch and our save.
        guard let server = error.serverRecord else { throw error }
        server["text"] = contents.notes[recordID.recordName]?.text
        take(try await database.save(server), named: recordID.recordName)
      }
    }
    for (recordID, result) in results.deleteResults {
      try result.get()
      contents.deleted.remove(recordID.recordName)
    }
  }

  private func record(of note: Note, named name: String) -> CKRecord {
    let recordID = CKRecord.ID(recordName: name, zoneID: Self.zoneID)
    let known = note.systemFields.flatMap { data -> CKRecord? in
      guard let coder = try? NSKeyedUnarchiver(forReadingFrom: data) else { return nil }
      coder.requiresSecureCoding = true
      return CKRecord(coder: coder)
    }
    let record = known ?? CKRecord(recordType: "Note", recordID: recordID)
    record["text"] = note.text
    return record
  }

  private mutating func take(_ record: CKRecord, named name: String) {
    contents.notes[name] = Note(
      text: record["text"] ?? "",
      systemFields: Self.systemFields(of: record),
      isChanged: false
    )
  }

  private static func systemFields(of record: CKRecord) -> Data {
    let coder = NSKeyedArchiver(requiringSecureCoding: true)
    record.encodeSystemFields(with: coder)
    coder.finishEncoding()
    return coder.encodedData
  }
}
