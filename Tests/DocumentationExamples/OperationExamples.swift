import CloudKit
import CloudKitTesting
import Foundation
import Testing

@Suite("Examples: operations")
struct OperationExamples {
  private let zoneID = CKRecordZone.ID(zoneName: "Notes")

  /// Runs a body with a database whose zone has these notes.
  private func withNotes(
    _ texts: String...,
    body: (CKDatabase, [CKRecord]) async throws -> Void
  ) async throws {
    let cloud = try await TestCloud()
    let database = try await cloud.container(device: "phone").privateCloudDatabase
    try await database.save(CKRecordZone(zoneID: zoneID))
    let notes = texts.enumerated().map { number, text in
      let recordID = CKRecord.ID(recordName: "note-\(number + 1)", zoneID: zoneID)
      let note = CKRecord(recordType: "Note", recordID: recordID)
      note["text"] = text
      note["place"] = CLLocation(latitude: 48.2 + Double(number), longitude: 16.4)
      return note
    }
    _ = try await database.modifyRecords(saving: notes, deleting: [])
    try await body(database, notes)
    await cloud.shutdown()
  }

  @Test("A record's identifier is its name in a zone")
  func recordID() {
    // example: CKRecordID
    let zoneID = CKRecordZone.ID(zoneName: "Notes")
    let noteID = CKRecord.ID(recordName: "note-1", zoneID: zoneID)
    let newID = CKRecord.ID(zoneID: zoneID)  // a new random name
    // end
    #expect(noteID == CKRecord.ID(recordName: "note-1", zoneID: zoneID))
    #expect(newID != CKRecord.ID(zoneID: zoneID))
  }

  @Test("A query operation reports each record and the end")
  func query() async throws {
    try await withNotes("Buy milk", "Call Ada") { database, _ in
      let found: [String] = try await withCheckedThrowingContinuation { continuation in
        var texts: [String] = []
        // example: CKQueryOperation
        let predicate = NSPredicate(format: "text BEGINSWITH %@", "Buy")
        let query = CKQuery(recordType: "Note", predicate: predicate)
        let operation = CKQueryOperation(query: query)
        operation.zoneID = zoneID
        operation.desiredKeys = ["text"]
        operation.recordMatchedBlock = { _, result in
          if let note = try? result.get(), let text: String = note["text"] { texts.append(text) }
        }
        operation.queryResultBlock = { result in
          // A cursor in the result continues the query: CKQueryOperation(cursor:).
          continuation.resume(with: result.map { _ in texts })
        }
        database.add(operation)
        // end
      }
      #expect(found == ["Buy milk"])
    }
  }

  @Test("A fetch operation reports the outcome of each record")
  func fetch() async throws {
    try await withNotes("Buy milk", "Call Ada") { database, notes in
      let noteIDs = notes.map(\.recordID)
      let count: Int = try await withCheckedThrowingContinuation { continuation in
        var fetched: [CKRecord.ID: CKRecord] = [:]
        // example: CKFetchRecordsOperation
        let operation = CKFetchRecordsOperation(recordIDs: noteIDs)
        operation.perRecordResultBlock = { recordID, result in
          fetched[recordID] = try? result.get()
        }
        operation.fetchRecordsResultBlock = { result in
          continuation.resume(with: result.map { fetched.count })
        }
        database.add(operation)
        // end
      }
      #expect(count == 2)
    }
  }

  @Test("An operation reads the changes of a zone after a token")
  func zoneChanges() async throws {
    try await withNotes("Buy milk", "Call Ada") { database, _ in
      let changed: Int = try await withCheckedThrowingContinuation { continuation in
        var token: CKServerChangeToken?
        var texts: [CKRecord.ID: String] = [:]
        // example: CKFetchRecordZoneChangesOperation
        let operation = CKFetchRecordZoneChangesOperation(
          recordZoneIDs: [zoneID],
          configurationsByRecordZoneID: [zoneID: .init(previousServerChangeToken: token)]
        )
        operation.recordWasChangedBlock = { recordID, result in
          texts[recordID] = try? result.get()["text"]
        }
        operation.recordWithIDWasDeletedBlock = { recordID, _ in texts[recordID] = nil }
        operation.recordZoneChangeTokensUpdatedBlock = { _, newToken, _ in token = newToken }
        operation.fetchRecordZoneChangesResultBlock = { result in
          continuation.resume(with: result.map { texts.count })
        }
        database.add(operation)
        // end
      }
      #expect(changed == 2)
    }
  }

  @Test("Records are sorted by their distance from a place")
  func distance() async throws {
    try await withNotes("Vienna", "Brno") { database, _ in
      // example: CKLocationSortDescriptor
      let brno = CLLocation(latitude: 49.2, longitude: 16.6)
      let within200km = NSPredicate(
        format: "distanceToLocation:fromLocation:(place, %@) < %f",
        brno,
        200_000.0
      )
      let query = CKQuery(recordType: "Note", predicate: within200km)
      query.sortDescriptors = [CKLocationSortDescriptor(key: "place", relativeLocation: brno)]
      let (nearest, _) = try await database.records(matching: query, inZoneWith: zoneID)
      // end
      let texts = try nearest.map { try $0.1.get()["text"] as? String }
      #expect(texts == ["Brno", "Vienna"])
    }
  }

  @Test("A group gives its operations a name and a configuration")
  func group() {
    let notes: [CKRecord] = []
    // example: CKOperationGroup
    let group = CKOperationGroup()
    group.name = "Import of notes"
    group.quantity = notes.count
    let configuration = CKOperation.Configuration()
    configuration.qualityOfService = .utility
    group.defaultConfiguration = configuration
    let operation = CKModifyRecordsOperation(recordsToSave: notes, recordIDsToDelete: nil)
    operation.group = group
    // end
    #expect(operation.group?.name == "Import of notes")
  }
}
