import Foundation
import OpenCloudKit
import Synchronization
import Testing

/// Programs that were written before Apple renamed parts of the API.
@Suite("Older names")
struct OlderNamesTests {
  private let service = ScriptedService()
  private let zoneID = CKRecordZone.ID(zoneName: "zone")

  @Test("A query is performed through the deprecated methods")
  @available(*, deprecated)
  func perform() async throws {
    let database = service.container().privateCloudDatabase
    let query = CKQuery(recordType: "Note", predicate: NSPredicate(value: true))
    for _ in 0..<2 {
      service.answer("{\"records\":[{\"recordName\":\"q\",\"recordType\":\"Note\"}]}")
    }
    let found = try await database.perform(query, inZoneWith: zoneID)
    #expect(found.map(\.recordID.recordName) == ["q"])
    let names: [String]? = await withCheckedContinuation { continuation in
      database.perform(query, inZoneWith: nil) { records, _ in
        continuation.resume(returning: records?.map(\.recordID.recordName))
      }
    }
    #expect(names == ["q"])
    // The script has no more replies.
    let error: (any Error)? = await withCheckedContinuation { continuation in
      database.perform(query, inZoneWith: nil) {
        continuation.resume(returning: $0 == nil ? $1 : nil)
      }
    }
    #expect((error as? CKError)?.code == .networkUnavailable)
  }

  @Test("CKFetchRecordChangesOperation fetches the changes of one zone")
  @available(*, deprecated)
  func recordChanges() async throws {
    service.answer(
      """
      {"zones":[{"zoneID":{"zoneName":"zone"},"syncToken":"2","moreComing":true,"records":[
       {"recordName":"a","recordType":"Note"},{"recordName":"b","deleted":true}]}]}
      """
    )
    let operation = CKFetchRecordChangesOperation(
      recordZoneID: zoneID,
      previousServerChangeToken: nil
    )
    operation.resultsLimit = 5
    let lines = Mutex<[String]>([])
    operation.recordChangedBlock = { record in
      lines.withLock { $0.append("changed \(record.recordID.recordName)") }
    }
    operation.recordWithIDWasDeletedBlock = { recordID in
      lines.withLock { $0.append("deleted \(recordID.recordName)") }
    }
    operation.fetchRecordChangesCompletionBlock = { token, _, error in
      lines.withLock { $0.append("end \(token?.syncToken ?? "") \(error == nil)") }
    }
    await withCheckedContinuation { continuation in
      operation.completionBlock = { continuation.resume() }
      service.container().privateCloudDatabase.add(operation)
    }
    #expect(lines.withLock { $0 } == ["changed a", "deleted b", "end 2 true"])
    #expect(operation.moreComing)
  }

  @Test("Deprecated names are aliases of the current types")
  @available(*, deprecated)
  func names() {
    let options = CKFetchRecordZoneChangesOperation.ZoneOptions()
    options.resultsLimit = 7
    let operation = CKFetchRecordZoneChangesOperation(
      recordZoneIDs: [zoneID],
      optionsByRecordZoneID: [zoneID: options]
    )
    #expect(operation.configurationsByRecordZoneID?[zoneID] === options)
    #expect(operation.optionsByRecordZoneID?[zoneID]?.resultsLimit == 7)
    let action: CKRecord.Reference.Action = .deleteSelf
    #expect(action == CKRecord.ReferenceAction.deleteSelf)
    let other: CKRecord_Reference_Action = .none
    #expect(other == CKRecord.ReferenceAction.none)
    #expect(!CKDatabaseSubscription().subscriptionID.isEmpty)
  }

  @Test("A record reads and sets several values at once by key-value coding")
  func severalValues() {
    let record = CKRecord(recordType: "Note")
    record.setValuesForKeys(["title": "x", "count": 2, "gone": NSNull()])
    #expect(record["title"] as? String == "x")
    #expect(record["count"] as? Int == 2)
    let values = record.dictionaryWithValues(forKeys: ["title", "none"])
    #expect(values["title"] as? String == "x")
    #expect(values["none"] is NSNull)
  }
}
