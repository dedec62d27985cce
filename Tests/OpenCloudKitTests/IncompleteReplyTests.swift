import Foundation
import OpenCloudKit
import Testing

/// Replies in which an item is missing or an error: they do not show that nothing is there.
@Suite("Replies that lack items")
struct IncompleteReplyTests {
  private let service = ScriptedService()
  private var database: CKDatabase { service.container().privateCloudDatabase }

  @Test("A zone with an error in the database's feed counts as changed")
  func feed() async throws {
    service.answer(
      """
      {"syncToken":"1","zones":[
       {"zoneID":{"zoneName":"broken"},"serverErrorCode":"INTERNAL_ERROR"},
       {"zoneID":{"zoneName":"whole"}}]}
      """
    )
    let changes = try await database.databaseChanges(since: nil)
    #expect(changes.modifications.map(\.zoneID.zoneName) == ["broken", "whole"])
    service.answer("{\"syncToken\":\"1\",\"zones\":[{\"serverErrorCode\":\"INTERNAL_ERROR\"}]}")
    await #expect(throws: CKError.self) { try await database.databaseChanges(since: nil) }
  }

  @Test("A listing with an error in it is not shown without that item")
  func listings() async throws {
    service.answer("{\"zones\":[{\"serverErrorCode\":\"INTERNAL_ERROR\"}]}")
    await #expect(throws: CKError.self) { try await database.allRecordZones() }
    service.answer("{\"subscriptions\":[{\"serverErrorCode\":\"INTERNAL_ERROR\"}]}")
    await #expect(throws: CKError.self) { try await database.allSubscriptions() }
  }

  @Test("A reply without the item that was asked for does not say that there is none")
  func lookUps() async throws {
    service.answer("{\"zones\":[]}")
    var error = await #expect(throws: CKError.self) {
      try await database.recordZone(for: CKRecordZone.ID(zoneName: "zone"))
    }
    #expect(error?.code == .internalError)
    service.answer("{\"subscriptions\":[]}")
    error = await #expect(throws: CKError.self) { try await database.subscription(for: "s") }
    #expect(error?.code == .internalError)
    service.answer("{\"subscriptions\":[]}")
    error = await #expect(throws: CKError.self) {
      try await database.modifySubscriptions(saving: [], deleting: ["s"])
    }
    #expect(error?.code == .internalError)
  }

  @Test("Subscriptions are looked up and modified in requests of 200")
  func manySubscriptions() async throws {
    let names = (0..<201).map { "s\($0)" }
    func reply(_ names: ArraySlice<String>) -> String {
      let items = names.map { "{\"subscriptionID\":\"\($0)\",\"subscriptionType\":\"database\"}" }
      return "{\"subscriptions\":[\(items.joined(separator: ","))]}"
    }
    for _ in 0..<2 {
      service.answer(reply(names.prefix(200)))
      service.answer(reply(names.suffix(1)))
    }
    let found = try await database.subscriptions(for: names)
    #expect(found.count == 201)
    let deleted = try await database.modifySubscriptions(saving: [], deleting: names)
    #expect(deleted.deleteResults.count == 201)
    #expect(service.requests.count == 4)
  }

  @Test("A save of all keys does not put a record back below the parent of an older copy")
  func parent() async throws {
    let service = try await RealService()
    let database = try await service.device("one").privateCloudDatabase
    let zoneID = try await database.save(CKRecordZone(zoneName: "zone")).zoneID
    let folderID = CKRecord.ID(recordName: "folder", zoneID: zoneID)
    let record = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "n", zoneID: zoneID)
    )
    record.parent = CKRecord.Reference(recordID: folderID, action: .none)
    _ = try await database.modifyRecords(
      saving: [CKRecord(recordType: "Folder", recordID: folderID), record],
      deleting: []
    )
    let older = try await database.record(for: record.recordID)
    record.parent = nil
    try await database.save(record)
    older["text"] = "edited"
    let results = try await database.modifyRecords(
      saving: [older],
      deleting: [],
      savePolicy: .allKeys
    )
    _ = try results.saveResults[older.recordID]?.get()
    let saved = try await database.record(for: record.recordID)
    #expect(saved["text"] as? String == "edited")
    #expect(saved.parent == nil)
    // A copy of a deleted record is saved, also if the folder was deleted with it.
    _ = try await database.modifyRecords(saving: [], deleting: [record.recordID, folderID])
    let again = try await database.modifyRecords(
      saving: [older],
      deleting: [],
      savePolicy: .allKeys
    )
    #expect(throws: Never.self) { try again.saveResults[older.recordID]?.get() }
  }
}
