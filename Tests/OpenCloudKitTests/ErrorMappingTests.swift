import CloudKitWebServices
import Foundation
import OpenCloudKit
import Testing

@Suite("Errors of the service")
struct ErrorMappingTests {
  private let service = ScriptedService()
  private let recordID = CKRecord.ID(
    recordName: "n",
    zoneID: CKRecordZone.ID(zoneName: "zone")
  )

  private func code(of body: () async throws -> Void) async -> CKError.Code? {
    do {
      try await body()
      return nil
    } catch {
      return (error as? CKError)?.code
    }
  }

  @Test(
    "Each server error code maps to its CKError code",
    arguments: [
      ("ACCESS_DENIED", 403, CKError.Code.permissionFailure),
      ("AUTHENTICATION_FAILED", 401, .notAuthenticated),
      ("AUTHENTICATION_REQUIRED", 421, .notAuthenticated),
      ("BAD_REQUEST", 400, .invalidArguments),
      ("INTERNAL_ERROR", 500, .serverRejectedRequest),
      ("NOT_FOUND", 404, .unknownItem),
      ("QUOTA_EXCEEDED", 413, .quotaExceeded),
      ("THROTTLED", 429, .requestRateLimited),
      ("TRY_AGAIN_LATER", 503, .serviceUnavailable),
      ("ZONE_BUSY", 503, .zoneBusy),
      ("VALIDATING_REFERENCE_ERROR", 412, .referenceViolation),
      ("ZONE_NOT_FOUND", 404, .zoneNotFound),
      ("UNIQUE_FIELD_ERROR", 400, .constraintViolation),
      ("SOMETHING_NEW", 400, .serverRejectedRequest),
    ]
  )
  func codes(name: String, status: Int, expected: CKError.Code) async throws {
    service.answer(
      "{\"uuid\":\"u\",\"serverErrorCode\":\"\(name)\",\"reason\":\"why\"}",
      status: status
    )
    let database = service.container().privateCloudDatabase
    let error = try #require(
      await #expect(throws: CKError.self) { try await database.record(for: recordID) }
    )
    #expect(error.code == expected)
    #expect(error.localizedDescription == "why")
    #expect(error.serverErrorCode == name)
  }

  @Test(
    "The extended error code takes precedence over the documented one",
    arguments: [
      ("CHANGE_TOKEN_EXPIRED", CKError.Code.changeTokenExpired),
      ("ZONE_PURGED", .userDeletedZone), ("USER_DELETED_ZONE", .userDeletedZone),
      ("LIMIT_EXCEEDED", .limitExceeded), ("NEVER_SEEN", .invalidArguments),
    ]
  )
  func exactCodes(name: String, expected: CKError.Code) async throws {
    service.answer(
      """
      {"zones":[{"zoneID":{"zoneName":"zone"},"serverErrorCode":"BAD_REQUEST","reason":"old",
       "extension":{"code":"\(name)"}}]}
      """
    )
    let database = service.container().privateCloudDatabase
    let code = await code {
      _ = try await database.recordZoneChanges(inZoneWith: recordID.zoneID, since: nil)
    }
    #expect(code == expected)
  }

  @Test("An error reply without an error dictionary is mapped by its status")
  func statusAlone() async throws {
    service.answer("<html>", status: 502, headers: ["retry-after": "7"])
    service.answer("not JSON")
    let database = service.container().privateCloudDatabase
    let error = await #expect(throws: CKError.self) { try await database.allRecordZones() }
    #expect(error?.code == .serviceUnavailable)
    #expect(error?.retryAfterSeconds == 7)
    #expect(await code { _ = try await database.allRecordZones() } == .internalError)
  }

  @Test("A conflict error contains the server's, the client's and the ancestor record")
  func conflict() async throws {
    service.answer(
      """
      {"records":[{"recordName":"n","serverErrorCode":"CONFLICT","reason":"newer",
       "extension":{"code":"SERVER_RECORD_CHANGED","serverRecord":{"recordName":"n",
        "recordType":"Note","recordChangeTag":"5",
        "fields":{"a":{"value":"theirs","type":"STRING"}}}}}]}
      """
    )
    var system = CKRecord.SystemFields()
    system.recordChangeTag = "1"
    let record = CKRecord(
      recordType: "Note",
      recordID: recordID,
      system: system,
      fields: ["a": .init(.string("base"))]
    )
    record["a"] = "ours"
    record["b"] = "new"
    let database = service.container().privateCloudDatabase
    let error = try #require(
      await #expect(throws: CKError.self) { try await database.save(record) }
    )
    #expect(error.code == .serverRecordChanged)
    #expect(error.serverRecord?["a"] as? String == "theirs")
    #expect(error.serverRecord?.recordChangeTag == "5")
    #expect(error.clientRecord === record)
    #expect(error.ancestorRecord?["a"] as? String == "base")
    #expect(error.ancestorRecord?.allKeys() == ["a"])
    #expect(record.changedKeys() == ["a", "b"])
    #expect(service.requests.count == 1)
  }

  @Test("A conflict without a server record looks it up", arguments: ["CONFLICT", "EXISTS"])
  func lookedUpConflict(code: String) async throws {
    service.answer(
      "{\"records\":[{\"recordName\":\"n\",\"serverErrorCode\":\"\(code)\",\"reason\":\"r\"}]}"
    )
    service.answer(
      "{\"records\":[{\"recordName\":\"n\",\"recordType\":\"Note\",\"recordChangeTag\":\"9\"}]}"
    )
    let database = service.container().privateCloudDatabase
    let record = CKRecord(recordType: "Note", recordID: recordID)
    let error = await #expect(throws: CKError.self) { try await database.save(record) }
    #expect(error?.code == .serverRecordChanged)
    #expect(error?.serverRecord?.recordChangeTag == "9")
    #expect(service.requests[1].path.contains("records/lookup"))
  }

  @Test("In a failed atomic batch the other records fail with batchRequestFailed")
  func atomicBatch() async throws {
    service.answer(
      """
      {"records":[{"recordName":"n","serverErrorCode":"BAD_REQUEST","reason":"bad field"},
       {"recordName":"m","serverErrorCode":"ATOMIC_ERROR","reason":"another failed"}]}
      """
    )
    let database = service.container().privateCloudDatabase
    let records = ["n", "m"].map {
      CKRecord(
        recordType: "Note",
        recordID: CKRecord.ID(recordName: $0, zoneID: recordID.zoneID)
      )
    }
    let results = try await database.modifyRecords(saving: records, deleting: [])
    let codes = records.map { results.saveResults[$0.recordID]?.failure?.code }
    #expect(codes == [.invalidArguments, .batchRequestFailed])
  }

  @Test("A missing record is an item's error, and fetching a single record throws it")
  func missing() async throws {
    let json =
      "{\"records\":[{\"recordName\":\"n\",\"serverErrorCode\":\"NOT_FOUND\",\"reason\":\"no\"}]}"
    service.answer(json)
    service.answer(json)
    let database = service.container().privateCloudDatabase
    let results = try await database.records(for: [recordID])
    #expect(results[recordID]?.failure?.code == .unknownItem)
    #expect(await code { _ = try await database.record(for: recordID) } == .unknownItem)
  }

  @Test("A refused and a broken connection have different codes, and only reads are retried")
  func transport() async throws {
    service.answer { _ in throw TransportError(wasSent: false, reason: "refused") }
    service.answer { _ in throw TransportError(wasSent: true, reason: "reset") }
    service.answer("{\"zones\":[]}")
    service.answer { _ in throw TransportError(wasSent: true, reason: "reset") }
    let clock = LeapingClock()
    let container = service.container(clock: clock, retries: .interactive)
    let database = container.privateCloudDatabase
    #expect(try await database.allRecordZones().isEmpty)
    #expect(service.requests.count == 3)
    #expect(clock.slept.count == 2)
    let record = CKRecord(recordType: "Note", recordID: recordID)
    #expect(await code { try await database.save(record) } == .networkFailure)
    #expect(service.requests.count == 4)
    service.answer { _ in throw CancellationError() }
    #expect(await code { try await database.save(record) } == .operationCancelled)
  }

  @Test("A number that JSON can't express is refused before a request is sent")
  func infinite() async throws {
    let record = CKRecord(recordType: "Note", recordID: recordID)
    record["x"] = Double.infinity
    let database = service.container().privateCloudDatabase
    #expect(await code { try await database.save(record) } == .invalidArguments)
    let mixed = CKRecord(recordType: "Note", recordID: recordID)
    mixed["x"] = NSArray(array: [NSNumber(value: 1), NSString(string: "a")])
    #expect(await code { try await database.save(mixed) } == .invalidArguments)
    #expect(service.requests.isEmpty)
  }
}

extension Result {
  /// The CloudKit error, if the result is one.
  var failure: CKError? {
    if case .failure(let error) = self { error as? CKError } else { nil }
  }
}
