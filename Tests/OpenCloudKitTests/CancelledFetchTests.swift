import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization
import Testing

/// Fetches that are cancelled while a file of one of their records is downloaded.
///
/// Services with equal seeds give equal names to files, so the tests run one after another.
@Suite("Cancelled fetches", .serialized)
struct CancelledFetchTests {
  private let service = ScriptedService()
  private let zoneID = CKRecordZone.ID(zoneName: "zone")

  private static let record = """
    {"recordName":"n","recordType":"Note","fields":{"f":{"type":"ASSETID","value":
     {"fileChecksum":"c","size":3,"downloadURL":"/file"}}}}
    """

  /// Answers with one record, and with a cancellation where its file is requested.
  private func answer(isPage: Bool, _ cancel: @escaping @Sendable () -> Void = {}) {
    let record = Self.record
    service.answer(
      isPage
        ? "{\"zones\":[{\"zoneID\":{\"zoneName\":\"zone\"},\"syncToken\":\"1\",\"records\":[\(record)]}]}"
        : "{\"records\":[\(record)]}"
    )
    service.answer { _ in
      cancel()
      throw CancellationError()
    }
  }

  private var database: CKDatabase { service.container(seed: 11).privateCloudDatabase }

  @Test("A cancelled operation reports no new token for records whose files it did not fetch")
  func operation() async throws {
    let operation = CKFetchRecordZoneChangesOperation(recordZoneIDs: [zoneID])
    answer(isPage: true) { operation.cancel() }
    let lines = Mutex<[String]>([])
    operation.recordZoneChangeTokensUpdatedBlock = { _, _, _ in
      lines.withLock { $0.append("token") }
    }
    operation.recordZoneFetchResultBlock = { _, result in
      let code = result.failure?.code
      lines.withLock { $0.append("zone \(code.map { "\($0)" } ?? "done")") }
    }
    operation.fetchRecordZoneChangesResultBlock = { result in
      let code = result.failure?.code
      lines.withLock { $0.append("end \(code.map { "\($0)" } ?? "done")") }
    }
    await withCheckedContinuation { continuation in
      operation.completionBlock = { continuation.resume() }
      database.add(operation)
    }
    #expect(lines.withLock { $0 } == ["zone operationCancelled", "end operationCancelled"])
  }

  @Test("A cancelled fetch of a zone's changes throws, and returns no token")
  func changes() async throws {
    answer(isPage: true)
    let error = await #expect(throws: CKError.self) {
      try await database.recordZoneChanges(inZoneWith: zoneID, since: nil)
    }
    #expect(error?.code == .operationCancelled)
  }

  @Test("A cancelled look-up and a cancelled query throw")
  func lookUpAndQuery() async throws {
    answer(isPage: false)
    var error = await #expect(throws: CKError.self) {
      try await database.records(for: [CKRecord.ID(recordName: "n", zoneID: zoneID)])
    }
    #expect(error?.code == .operationCancelled)
    answer(isPage: false)
    error = await #expect(throws: CKError.self) {
      try await database.records(
        matching: CKQuery(recordType: "Note", predicate: NSPredicate(value: true)),
        inZoneWith: zoneID
      )
    }
    #expect(error?.code == .operationCancelled)
  }

  @Test("A file that the service refuses to a user who is signed out is fetched again later")
  @available(*, deprecated)
  func signedOut() async throws {
    let signedOut = ScriptedService()
    let record = Self.record
    signedOut.answer(
      "{\"zones\":[{\"zoneID\":{\"zoneName\":\"zone\"},\"syncToken\":\"1\",\"records\":[\(record)]}]}"
    )
    signedOut.answer("{\"serverErrorCode\":\"AUTHENTICATION_REQUIRED\"}", status: 421)
    let operation = CKFetchRecordChangesOperation(
      recordZoneID: zoneID,
      previousServerChangeToken: CKServerChangeToken(syncToken: "0")
    )
    let token = Mutex<String?>(nil)
    operation.recordChangedBlock = { _ in }
    operation.fetchRecordChangesCompletionBlock = { new, _, _ in
      token.withLock { $0 = new?.syncToken }
    }
    await withCheckedContinuation { continuation in
      operation.completionBlock = { continuation.resume() }
      signedOut.container(seed: 12).privateCloudDatabase.add(operation)
    }
    #expect(token.withLock { $0 } == "0")
  }

  @Test("A conflict whose files were cancelled has no paths of files that do not exist")
  func conflict() async throws {
    service.answer(
      """
      {"records":[{"recordName":"n","serverErrorCode":"CONFLICT","reason":"newer",
       "extension":{"code":"SERVER_RECORD_CHANGED","serverRecord":{"recordName":"n",
        "recordType":"Note","recordChangeTag":"5","fields":{
         "a":{"type":"ASSETID","value":{"fileChecksum":"c","size":3,"downloadURL":"/a"}},
         "b":{"type":"ASSETID","value":{"fileChecksum":"d","size":3,"downloadURL":"/b"}}}}}}]}
      """
    )
    service.answer { _ in WebServiceResponse(status: 200, body: Data("abc".utf8)) }
    service.answer { _ in throw CancellationError() }
    let record = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "n", zoneID: zoneID)
    )
    let error = await #expect(throws: CKError.self) { try await database.save(record) }
    let server = try #require(error?.serverRecord)
    for key in ["a", "b"] {
      let asset = try #require(server[key] as? CKAsset)
      #expect(asset.fileURL.map { FileManager.default.fileExists(atPath: $0.path) } != false)
    }
  }
}
