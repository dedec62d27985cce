import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("Operations")
struct OperationTests {
  private let service = ScriptedService()
  private let zoneID = CKRecordZone.ID(zoneName: "zone")

  /// Adds an operation and waits for its end.
  private func run(_ operation: CKDatabaseOperation, on database: CKDatabase) async {
    await withCheckedContinuation { continuation in
      operation.completionBlock = { continuation.resume() }
      database.add(operation)
    }
  }

  /// Records the calls of an operation's blocks.
  private final class Log: Sendable {
    private let state = Mutex<[String]>([])
    var lines: [String] { state.withLock { $0 } }
    func add(_ line: String) { state.withLock { $0.append(line) } }
  }

  private func words(_ result: Result<Void, any Error>) -> String {
    result.failure.map { "failed \($0.code)" } ?? "done"
  }

  @Test("A batch calls the block of each record, then the result block with a partial failure")
  func modify() async throws {
    service.answer(
      """
      {"records":[{"recordName":"a","recordType":"Note","recordChangeTag":"1"},
       {"recordName":"b","serverErrorCode":"BAD_REQUEST","reason":"bad"},
       {"recordName":"c","deleted":true}]}
      """
    )
    let records = ["a", "b"].map {
      CKRecord(recordType: "Note", recordID: CKRecord.ID(recordName: $0, zoneID: zoneID))
    }
    let operation = CKModifyRecordsOperation(
      recordsToSave: records,
      recordIDsToDelete: [CKRecord.ID(recordName: "c", zoneID: zoneID)]
    )
    operation.isAtomic = false
    let log = Log()
    operation.perRecordSaveBlock = { recordID, result in
      log.add("save \(recordID.recordName) \(result.failure.map { "\($0.code)" } ?? "done")")
    }
    operation.perRecordDeleteBlock = { recordID, result in
      log.add("delete \(recordID.recordName) \(words(result))")
    }
    operation.modifyRecordsResultBlock = { log.add(words($0)) }
    await run(operation, on: service.container().privateCloudDatabase)
    #expect(
      log.lines == [
        "save a done", "save b invalidArguments", "delete c done", "failed partialFailure",
      ]
    )
    #expect(operation.isFinished)
    #expect(!operation.isExecuting)
  }

  @Test("A zone's changes are fetched to the end, with a change token after each page")
  func zoneChanges() async throws {
    service.answer(
      """
      {"zones":[{"zoneID":{"zoneName":"zone"},"syncToken":"1","moreComing":true,"records":[
       {"recordName":"a","recordType":"Note"}]}]}
      """
    )
    service.answer(
      """
      {"zones":[{"zoneID":{"zoneName":"zone"},"syncToken":"2","records":[
       {"recordName":"b","deleted":true,"recordType":"Note"}]}]}
      """
    )
    let operation = CKFetchRecordZoneChangesOperation(
      recordZoneIDs: [zoneID],
      configurationsByRecordZoneID: [
        zoneID: .init(previousServerChangeToken: CKServerChangeToken(syncToken: "0"))
      ]
    )
    let log = Log()
    operation.recordWasChangedBlock = { recordID, _ in log.add("changed \(recordID.recordName)") }
    operation.recordWithIDWasDeletedBlock = { log.add("deleted \($0.recordName) \($1)") }
    operation.recordZoneChangeTokensUpdatedBlock = { _, token, _ in
      log.add("token \(token?.syncToken ?? "")")
    }
    operation.recordZoneFetchResultBlock = { _, result in
      log.add("zone \((try? result.get().serverChangeToken.syncToken) ?? "failed")")
    }
    operation.fetchRecordZoneChangesResultBlock = { log.add(words($0)) }
    await run(operation, on: service.container().privateCloudDatabase)
    #expect(log.lines == ["changed a", "token 1", "deleted b Note", "zone 2", "done"])
    #expect(service.requests.count == 2)
  }

  @Test("Zones, database changes, queries, records and subscriptions have operations")
  func others() async throws {
    let database = service.container().privateCloudDatabase
    let log = Log()

    service.answer("{\"zones\":[{\"zoneID\":{\"zoneName\":\"zone\"}}]}")
    let zones = CKModifyRecordZonesOperation(recordZonesToSave: [CKRecordZone(zoneID: zoneID)])
    zones.modifyRecordZonesResultBlock = { log.add("zones \(words($0))") }
    await run(zones, on: database)

    service.answer("{\"zones\":[{\"zoneID\":{\"zoneName\":\"zone\"}}]}")
    let all = CKFetchRecordZonesOperation.fetchAllRecordZonesOperation()
    all.perRecordZoneResultBlock = { zoneID, _ in log.add("zone \(zoneID.zoneName)") }
    await run(all, on: database)

    service.answer("{\"zones\":[{\"zoneID\":{\"zoneName\":\"zone\"}}],\"syncToken\":\"d\"}")
    let changes = CKFetchDatabaseChangesOperation(previousServerChangeToken: nil)
    changes.recordZoneWithIDChangedBlock = { log.add("changed \($0.zoneName)") }
    changes.fetchDatabaseChangesResultBlock = { result in
      log.add("database \((try? result.get().serverChangeToken.syncToken) ?? "failed")")
    }
    await run(changes, on: database)

    service.answer("{\"records\":[{\"recordName\":\"q\",\"recordType\":\"Note\"}]}")
    let query = CKQueryOperation(
      query: CKQuery(recordType: "Note", predicate: NSPredicate(value: true))
    )
    query.recordMatchedBlock = { recordID, _ in log.add("found \(recordID.recordName)") }
    query.queryResultBlock = { result in
      log.add("query \((try? result.get()) == .some(nil) ? "ended" : "goes on")")
    }
    await run(query, on: database)

    service.answer(
      "{\"records\":[{\"recordName\":\"n\",\"serverErrorCode\":\"NOT_FOUND\",\"reason\":\"-\"}]}"
    )
    let fetch = CKFetchRecordsOperation(recordIDs: [CKRecord.ID(recordName: "n")])
    fetch.fetchRecordsResultBlock = { log.add("fetch \(words($0))") }
    await run(fetch, on: database)

    service.answer("{\"subscriptions\":[{\"subscriptionID\":\"s\"}]}")
    let save = CKModifySubscriptionsOperation(
      subscriptionsToSave: [CKDatabaseSubscription(subscriptionID: "s")]
    )
    save.modifySubscriptionsResultBlock = { log.add("subscribe \(words($0))") }
    await run(save, on: database)

    service.answer(
      "{\"subscriptions\":[{\"subscriptionID\":\"s\",\"subscriptionType\":\"database\"}]}"
    )
    let list = CKFetchSubscriptionsOperation.fetchAllSubscriptionsOperation()
    list.perSubscriptionResultBlock = { name, _ in log.add("subscription \(name)") }
    await run(list, on: database)

    #expect(
      log.lines == [
        "zones done", "zone zone", "changed zone", "database d", "found q", "query ended",
        "fetch failed partialFailure", "subscribe done", "subscription s",
      ]
    )
  }

  @Test("A cancelled operation ends with operationCancelled, and its dependents still run")
  func cancelling() async throws {
    let database = service.container().privateCloudDatabase
    let log = Log()
    let first = CKFetchRecordsOperation(recordIDs: [CKRecord.ID(recordName: "n")])
    first.fetchRecordsResultBlock = { log.add("first \(words($0))") }
    first.cancel()
    let second = CKFetchRecordZonesOperation()
    second.fetchRecordZonesResultBlock = { log.add("second \(words($0))") }
    second.addDependency(first)
    service.answer("{\"zones\":[]}")
    await withCheckedContinuation { continuation in
      second.completionBlock = { continuation.resume() }
      database.add(second)
      database.add(first)
    }
    #expect(log.lines.last == "second done")
    #expect(first.isFinished)
  }

  @Test("The deprecated blocks are called with the same results, after the current ones")
  @available(*, deprecated)
  func olderBlocks() async throws {
    let database = service.container().privateCloudDatabase
    let log = Log()
    service.answer(
      """
      {"records":[{"recordName":"a","recordType":"Note","recordChangeTag":"1"},
       {"recordName":"b","serverErrorCode":"BAD_REQUEST","reason":"bad"}]}
      """
    )
    let save = CKModifyRecordsOperation(
      recordsToSave: ["a", "b"].map {
        CKRecord(recordType: "Note", recordID: CKRecord.ID(recordName: $0, zoneID: zoneID))
      }
    )
    save.perRecordCompletionBlock = { log.add("\($0.recordID.recordName) \($1 == nil)") }
    save.modifyRecordsResultBlock = { _ in log.add("result") }
    save.modifyRecordsCompletionBlock = { saved, deleted, error in
      log.add("saved \(saved?.count ?? -1) \(deleted?.count ?? -1) \(error == nil)")
    }
    await run(save, on: database)

    service.answer("{\"records\":[{\"recordName\":\"q\",\"recordType\":\"Note\"}]}")
    let query = CKQueryOperation(
      query: CKQuery(recordType: "Note", predicate: NSPredicate(value: true))
    )
    query.recordFetchedBlock = { log.add("found \($0.recordID.recordName)") }
    query.queryCompletionBlock = { log.add("query \($0 == nil) \($1 == nil)") }
    await run(query, on: database)

    service.answer(
      """
      {"zones":[{"zoneID":{"zoneName":"zone"},"syncToken":"1","records":[
       {"recordName":"a","recordType":"Note"}]}]}
      """
    )
    let changes = CKFetchRecordZoneChangesOperation(recordZoneIDs: [zoneID])
    changes.recordChangedBlock = { log.add("changed \($0.recordID.recordName)") }
    changes.recordZoneFetchCompletionBlock = { zoneID, token, _, moreComing, error in
      log.add("\(zoneID.zoneName) \(token?.syncToken ?? "") \(moreComing) \(error == nil)")
    }
    changes.fetchRecordZoneChangesCompletionBlock = { log.add("end \($0 == nil)") }
    await run(changes, on: database)
    #expect(
      log.lines == [
        "a true", "b false", "result", "saved 1 0 false", "found q", "query true true",
        "changed a", "zone 1 false true", "end true",
      ]
    )
  }

  @Test("If the service is unreachable, every zone's block and the result block get the error")
  func zonesAway() async throws {
    let zones = ["a", "b"].map { CKRecordZone.ID(zoneName: $0) }
    let operation = CKFetchRecordZoneChangesOperation(recordZoneIDs: zones)
    let log = Log()
    operation.recordZoneFetchResultBlock = { zoneID, result in
      log.add("\(zoneID.zoneName) \(result.failure.map { "\($0.code)" } ?? "done")")
    }
    operation.fetchRecordZoneChangesResultBlock = { log.add(words($0)) }
    await run(operation, on: service.container().privateCloudDatabase)
    #expect(
      log.lines == ["a networkUnavailable", "b networkUnavailable", "failed networkUnavailable"]
    )
    #expect(service.requests.count == 1)
  }

  @Test("A cancelled empty operation ends with operationCancelled")
  func cancelledAndEmpty() async throws {
    let log = Log()
    let operation = CKModifyRecordZonesOperation()
    operation.modifyRecordZonesResultBlock = { log.add(words($0)) }
    operation.cancel()
    await run(operation, on: service.container().privateCloudDatabase)
    #expect(log.lines == ["failed operationCancelled"])
  }

  @Test("Records saved before the service became unreachable are reported as saved")
  func partlyAway() async throws {
    service.answer(
      "{\"records\":[{\"recordName\":\"a\",\"recordType\":\"N\",\"recordChangeTag\":\"1\"}]}"
    )
    let records = ["a", "b", "c"].map {
      CKRecord(
        recordType: "N",
        recordID: CKRecord.ID(recordName: $0, zoneID: CKRecordZone.ID(zoneName: "zone-\($0)"))
      )
    }
    let operation = CKModifyRecordsOperation(recordsToSave: records)
    let log = Log()
    operation.perRecordSaveBlock = { recordID, result in
      log.add("\(recordID.recordName) \(result.failure.map { "\($0.code)" } ?? "done")")
    }
    operation.modifyRecordsResultBlock = { log.add(words($0)) }
    await run(operation, on: service.container().privateCloudDatabase)
    #expect(
      log.lines == [
        "a done", "b networkUnavailable", "c networkUnavailable", "failed partialFailure",
      ]
    )
    #expect(service.requests.count == 2)
  }
}
