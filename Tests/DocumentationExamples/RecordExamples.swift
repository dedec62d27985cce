import CloudKit
import CloudKitTesting
import Foundation
import Testing

@Suite("Examples: records")
struct RecordExamples {
  private let zoneID = CKRecordZone.ID(zoneName: "Notes")

  private func withDatabase(
    _ body: (CKDatabase) async throws -> Void
  ) async throws {
    let cloud = try await TestCloud()
    let database = try await cloud.container(device: "phone").privateCloudDatabase
    try await database.save(CKRecordZone(zoneID: zoneID))
    try await body(database)
    await cloud.shutdown()
  }

  private func note(_ name: String, _ text: String) -> CKRecord {
    let recordID = CKRecord.ID(recordName: name, zoneID: zoneID)
    let note = CKRecord(recordType: "Note", recordID: recordID)
    note["text"] = text
    return note
  }

  @Test("A record has fields of CloudKit's types")
  func record() {
    let folderID = CKRecord.ID(recordName: "folder", zoneID: zoneID)
    // example: CKRecord
    let noteID = CKRecord.ID(
      recordName: "note-1",
      zoneID: CKRecordZone.ID(zoneName: "Notes")
    )
    let note = CKRecord(recordType: "Note", recordID: noteID)
    note["text"] = "Buy milk"
    note["priority"] = 2
    note["tags"] = ["home", "today"]
    note["folder"] = CKRecord.Reference(recordID: folderID, action: .deleteSelf)
    let text = note["text"] as? String
    let priority: Int? = note["priority"]
    // end
    #expect(text == "Buy milk")
    #expect(priority == 2)
    #expect(Set(note.changedKeys()) == ["folder", "priority", "tags", "text"])
  }

  @Test("A database saves, fetches and deletes records")
  func database() async throws {
    let cloud = try await TestCloud()
    let container = try await cloud.container(device: "phone")
    // example: CKDatabase
    let database = container.privateCloudDatabase
    let zone = try await database.save(CKRecordZone(zoneName: "Notes"))

    let noteID = CKRecord.ID(recordName: "note-1", zoneID: zone.zoneID)
    let note = CKRecord(recordType: "Note", recordID: noteID)
    note["text"] = "Buy milk"
    try await database.save(note)

    let fetched = try await database.record(for: noteID)
    fetched["text"] = "Buy oat milk"
    try await database.save(fetched)
    try await database.deleteRecord(withID: noteID)
    // end
    await #expect(throws: CKError.self) { try await database.record(for: noteID) }
    await cloud.shutdown()
  }

  @Test("Several records are saved together, each with a result")
  func modifyRecords() async throws {
    try await withDatabase { database in
      let notes = [note("note-1", "Buy milk"), note("note-2", "Call Ada")]
      // example: Saving several records
      let (saved, _) = try await database.modifyRecords(saving: notes, deleting: [])
      for (recordID, result) in saved {
        do {
          let record = try result.get()
          print(recordID.recordName, record.recordChangeTag ?? "")
        } catch {
          print(recordID.recordName, error)
        }
      }
      // end
      #expect(saved.count == 2)
    }
  }

  @Test("A save over a newer version fails and brings that version along")
  func conflict() async throws {
    try await withDatabase { database in
      let note = note("note-1", "Buy milk")
      try await database.save(note)
      let newer = try await database.record(for: note.recordID)
      newer["text"] = "Buy bread"
      try await database.save(newer)
      note["text"] = "Buy oat milk"
      // example: A conflict
      do {
        try await database.save(note)
      } catch let error as CKError where error.code == .serverRecordChanged {
        guard let server = error.serverRecord else { throw error }
        // Merge here; `error.ancestorRecord` is the version before both edits.
        server["text"] = note["text"]
        try await database.save(server)
      }
      // end
      let stored = try await database.record(for: note.recordID)
      #expect(stored["text"] == "Buy oat milk")
    }
  }

  @Test("A query finds records by their fields, page by page")
  func query() async throws {
    try await withDatabase { database in
      let notes = [note("note-1", "Buy milk"), note("note-2", "Call Ada")]
      _ = try await database.modifyRecords(saving: notes, deleting: [])
      // example: CKQuery
      let query = CKQuery(
        recordType: "Note",
        predicate: NSPredicate(format: "text BEGINSWITH %@", "Buy")
      )
      query.sortDescriptors = [NSSortDescriptor(key: "text", ascending: true)]
      var (page, cursor) = try await database.records(matching: query, inZoneWith: zoneID)
      var found = try page.map { try $0.1.get() }
      while let next = cursor {
        (page, cursor) = try await database.records(continuingMatchFrom: next)
        found += try page.map { try $0.1.get() }
      }
      // end
      #expect(found.map(\.recordID.recordName) == ["note-1"])
    }
  }

  @Test("Changes of a zone are read from a token on")
  func changes() async throws {
    try await withDatabase { database in
      try await database.save(note("note-1", "Buy milk"))
      var token: CKServerChangeToken?
      var texts: [CKRecord.ID: String] = [:]
      // example: CKServerChangeToken
      var moreComing = true
      while moreComing {
        let changes = try await database.recordZoneChanges(inZoneWith: zoneID, since: token)
        for (recordID, result) in changes.modificationResultsByID {
          texts[recordID] = try result.get().record["text"]
        }
        for deletion in changes.deletions { texts[deletion.recordID] = nil }
        token = changes.changeToken  // keep it together with the texts
        moreComing = changes.moreComing
      }
      // end
      #expect(Array(texts.values) == ["Buy milk"])
      #expect(token != nil)
    }
  }

  @Test("A file travels as an asset")
  func asset() async throws {
    try await Blog.withFolder { folder in
      try await withDatabase { database in
        let photoURL = folder.appendingPathComponent("photo.jpg")
        try Data([1, 2, 3]).write(to: photoURL)
        let note = note("note-1", "Buy milk")
        // example: CKAsset
        note["photo"] = CKAsset(fileURL: photoURL)
        try await database.save(note)

        let fetched = try await database.record(for: note.recordID)
        let photo = fetched["photo"] as? CKAsset
        let bytes = try photo?.fileURL.map { try Data(contentsOf: $0) }
        // end
        #expect(bytes == Data([1, 2, 3]))
      }
    }
  }

  @Test("An operation saves in the background and reports each record")
  func operation() async throws {
    try await withDatabase { database in
      let notes = [note("note-1", "Buy milk")]
      let saved = try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Int, any Error>) in
        // example: CKModifyRecordsOperation
        let operation = CKModifyRecordsOperation(recordsToSave: notes, recordIDsToDelete: nil)
        operation.savePolicy = .changedKeys
        operation.perRecordSaveBlock = { recordID, result in
          if case .failure(let error) = result { print(recordID.recordName, error) }
        }
        operation.modifyRecordsResultBlock = { result in
          continuation.resume(with: result.map { notes.count })
        }
        database.add(operation)
        // end
      }
      #expect(saved == 1)
    }
  }

  @Test("A zone is saved before its records, and deleted with them")
  func zone() async throws {
    let cloud = try await TestCloud()
    let database = try await cloud.container(device: "phone").privateCloudDatabase
    // example: CKRecordZone
    let zone = try await database.save(CKRecordZone(zoneName: "Notes"))
    let names = try await database.allRecordZones().map(\.zoneID.zoneName)
    try await database.deleteRecordZone(withID: zone.zoneID)
    // end
    #expect(names.contains("Notes"))
    await cloud.shutdown()
  }

  @Test("A reference deletes the notes of a folder with it")
  func reference() async throws {
    try await withDatabase { database in
      let folderID = CKRecord.ID(recordName: "folder-1", zoneID: zoneID)
      let folder = CKRecord(recordType: "Folder", recordID: folderID)
      let note = note("note-1", "Buy milk")
      // example: CKRecord.Reference
      note["folder"] = CKRecord.Reference(record: folder, action: .deleteSelf)
      _ = try await database.modifyRecords(saving: [folder, note], deleting: [])

      let query = CKQuery(
        recordType: "Note",
        predicate: NSPredicate(
          format: "folder == %@",
          CKRecord.Reference(record: folder, action: .none)
        )
      )
      let (found, _) = try await database.records(matching: query, inZoneWith: zoneID)
      // end
      #expect(found.count == 1)
      try await database.deleteRecord(withID: folder.recordID)
      await #expect(throws: CKError.self) { try await database.record(for: note.recordID) }
    }
  }
}
