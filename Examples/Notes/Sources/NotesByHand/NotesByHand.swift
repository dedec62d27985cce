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
    let arguments = CommandLine.arguments.dropFirst()
    guard let path = arguments.first else { return print("NotesByHand FILE [add TEXT | list]") }
    var tool = NotesByHand(file: URL(fileURLWithPath: path))
    if arguments.dropFirst().first == "add" {
      let text = arguments.dropFirst(2).joined(separator: " ")
      tool.contents.notes[UUID().uuidString] = Note(text: text)
    }
    try await tool.sync()
    for note in tool.contents.notes.values.sorted(by: { $0.text < $1.text }) { print(note.text) }
  }

  private init(file: URL) {
    self.file = file
    let data = try? Data(contentsOf: file)
    contents = data.flatMap { try? JSONDecoder().decode(Contents.self, from: $0) } ?? Contents()
  }

  private mutating func sync() async throws {
    // Saving a zone that is there already does no harm.
    try await database.save(CKRecordZone(zoneID: Self.zoneID))
    try await fetch()
    try await send()
    try JSONEncoder().encode(contents).write(to: file, options: .atomic)
  }

  /// Takes over what others changed since the last time.
  private mutating func fetch() async throws {
    var token = contents.token.flatMap {
      try? NSKeyedUnarchiver.unarchivedObject(ofClass: CKServerChangeToken.self, from: $0)
    }
    var moreComing = true
    while moreComing {
      let changes = try await database.recordZoneChanges(inZoneWith: Self.zoneID, since: token)
      for (recordID, result) in changes.modificationResultsByID {
        take(try result.get().record, named: recordID.recordName)
      }
      for deletion in changes.deletions { contents.notes[deletion.recordID.recordName] = nil }
      token = changes.changeToken
      moreComing = changes.moreComing
    }
    contents.token = try token.map {
      try NSKeyedArchiver.archivedData(withRootObject: $0, requiringSecureCoding: true)
    }
  }

  /// Sends what was changed here; where both sides changed a note, this side's text wins.
  private mutating func send() async throws {
    let records = contents.notes.filter(\.value.isChanged).map {
      record(of: $0.value, named: $0.key)
    }
    let results = try await database.modifyRecords(
      saving: records,
      deleting: [],
      atomically: false
    )
    for (recordID, result) in results.saveResults {
      do {
        take(try result.get(), named: recordID.recordName)
      } catch let error as CKError where error.code == .serverRecordChanged {
        guard let server = error.serverRecord else { throw error }
        server["text"] = contents.notes[recordID.recordName]?.text
        take(try await database.save(server), named: recordID.recordName)
      }
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
    let coder = NSKeyedArchiver(requiringSecureCoding: true)
    record.encodeSystemFields(with: coder)
    coder.finishEncoding()
    let text = record["text"] as? String ?? ""
    contents.notes[name] = Note(text: text, systemFields: coder.encodedData, isChanged: false)
  }
}
