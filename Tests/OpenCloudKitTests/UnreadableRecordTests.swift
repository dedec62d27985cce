import Foundation
import OpenCloudKit
import Synchronization
import Testing

/// Operations that fetch changes, for pages of which a record or a file could not be read.
@Suite("Unreadable records of a feed")
struct UnreadableRecordTests {
  private let service = ScriptedService()
  private let zoneID = CKRecordZone.ID(zoneName: "zone")
  private let log = Log()

  /// The lines that an operation's blocks note.
  private final class Log: Sendable {
    private let all = Mutex<[String]>([])
    var lines: [String] { all.withLock { $0 } }
    func add(_ line: String) { all.withLock { $0.append(line) } }
  }

  private func run(_ operation: CKDatabaseOperation) async {
    await withCheckedContinuation { continuation in
      operation.completionBlock = { continuation.resume() }
      service.container(seed: 6).privateCloudDatabase.add(operation)
    }
  }

  private func answerWithBrokenRecord() {
    service.answer(
      """
      {"zones":[{"zoneID":{"zoneName":"zone"},"syncToken":"1","records":[
       {"recordName":"good","recordType":"Note"},
       {"recordName":"bad","serverErrorCode":"INTERNAL_ERROR"},
       {"recordName":"gone","deleted":true,"recordType":"Note"}]}]}
      """
    )
  }

  private func answerWithMissingFile() {
    service.answer(
      """
      {"zones":[{"zoneID":{"zoneName":"zone"},"syncToken":"1","records":[
       {"recordName":"bad","recordType":"Note","fields":{"f":{"type":"ASSETID","value":
        {"fileChecksum":"c","size":3,"downloadURL":"/gone"}}}},
       {"recordName":"good","recordType":"Note"},
       {"recordName":"gone","deleted":true,"recordType":"Note"}]}]}
      """
    )
    service.answer("{\"serverErrorCode\":\"NOT_FOUND\"}", status: 404)
  }

  @Test("A record that the service could not read is passed to the record's block as a failure")
  func zoneChanges() async throws {
    answerWithBrokenRecord()
    let operation = CKFetchRecordZoneChangesOperation(recordZoneIDs: [zoneID])
    operation.recordWasChangedBlock = { recordID, result in
      log.add("\(recordID.recordName) \(result.failure == nil ? "read" : "failed")")
    }
    operation.recordZoneFetchResultBlock = { _, result in
      log.add("zone \((try? result.get().serverChangeToken.syncToken) ?? "failed")")
    }
    await run(operation)
    #expect(log.lines == ["good read", "bad failed", "zone 1"])
  }

  @Test("Without a block for failures, a zone with an unreadable record ends with an error")
  @available(*, deprecated)
  func zoneChangesOlderBlocks() async throws {
    answerWithBrokenRecord()
    let operation = CKFetchRecordZoneChangesOperation(recordZoneIDs: [zoneID])
    operation.recordChangedBlock = { log.add("\($0.recordID.recordName) read") }
    operation.recordWithIDWasDeletedBlock = { recordID, _ in log.add("\(recordID.recordName) gone")
    }
    operation.recordZoneFetchCompletionBlock = { _, token, _, _, error in
      let items = (error as? CKError)?.partialErrorsByItemID?.keys
      let names = items?.compactMap { ($0.base as? CKRecord.ID)?.recordName } ?? []
      log.add("zone \(token?.syncToken ?? "-") \(names)")
    }
    await run(operation)
    #expect(log.lines == ["good read", "gone gone", "zone - [\"bad\"]"])
  }

  /// A file that is missing stays missing; what the service could not read it may read later.
  @Test(
    "The older operation ends with an error, and with its previous token if a later fetch may read them",
    arguments: [true, false]
  )
  @available(*, deprecated)
  func recordChanges(isFile: Bool) async throws {
    if isFile { answerWithMissingFile() } else { answerWithBrokenRecord() }
    let operation = CKFetchRecordChangesOperation(
      recordZoneID: zoneID,
      previousServerChangeToken: CKServerChangeToken(syncToken: "0")
    )
    operation.recordChangedBlock = { log.add("\($0.recordID.recordName) read") }
    operation.recordWithIDWasDeletedBlock = { log.add("\($0.recordName) gone") }
    operation.fetchRecordChangesCompletionBlock = { token, _, error in
      let items = (error as? CKError)?.partialErrorsByItemID?.keys
      let names = items?.compactMap { ($0.base as? CKRecord.ID)?.recordName } ?? []
      log.add("token \(token?.syncToken ?? "-") \(names)")
    }
    await run(operation)
    #expect(log.lines == ["good read", "gone gone", "token \(isFile ? 1 : 0) [\"bad\"]"])
  }

  @Test("Without a block for failures, a zone with a missing file ends with a new token")
  @available(*, deprecated)
  func missingFileOlderBlocks() async throws {
    answerWithMissingFile()
    let operation = CKFetchRecordZoneChangesOperation(recordZoneIDs: [zoneID])
    operation.recordChangedBlock = { log.add("\($0.recordID.recordName) read") }
    operation.recordZoneFetchCompletionBlock = { _, token, _, _, error in
      let items = (error as? CKError)?.partialErrorsByItemID?.keys
      let names = items?.compactMap { ($0.base as? CKRecord.ID)?.recordName } ?? []
      log.add("zone \(token?.syncToken ?? "-") \(names)")
    }
    operation.fetchRecordZoneChangesCompletionBlock = { error in
      log.add((error as? CKError)?.code == .partialFailure ? "partial" : "no error")
    }
    await run(operation)
    #expect(log.lines == ["good read", "zone 1 [\"bad\"]", "partial"])
  }
}
