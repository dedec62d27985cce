import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization
import Testing

/// One bad reply of a service, and the error that a call makes of it.
struct BadAnswer: Sendable, CustomTestStringConvertible {
  var name: String
  var code: CKError.Code
  var answer: ScriptedService.Answer
  /// The reply over a socket; nil for failures that only a transport in the process can simulate.
  var reply: (status: Int, body: String)?

  var testDescription: String { name }

  init(_ name: String, _ code: CKError.Code, _ body: String, status: Int = 200) {
    self.name = name
    self.code = code
    answer = { _ in WebServiceResponse(status: status, body: Data(body.utf8)) }
    reply = (status, body)
  }

  init(_ name: String, _ code: CKError.Code, throwing error: any Error & Sendable) {
    self.name = name
    self.code = code
    answer = { _ in throw error }
  }

  static let ofWholeRequests: [BadAnswer] = [
    BadAnswer("nothing", .internalError, ""),
    BadAnswer("null", .internalError, "null"),
    BadAnswer("a truncated reply", .internalError, "{\"records\":[{\"recordName\":\"n\",\"rec"),
    BadAnswer("a web page", .internalError, "<html><body>It works!</body></html>"),
    BadAnswer("another object", .internalError, "{\"zones\":[]}"),
    BadAnswer("a list", .internalError, "[]"),
    BadAnswer("too few items", .internalError, "{\"records\":[]}"),
    BadAnswer(
      "too many items",
      .internalError,
      "{\"records\":[{\"recordName\":\"n\",\"recordType\":\"T\"},{\"recordName\":\"m\"}]}"
    ),
    BadAnswer("an error page of a proxy", .serviceUnavailable, "<h1>Bad gateway</h1>", status: 502),
    BadAnswer("a missing page", .unknownItem, "<h1>Not found</h1>", status: 404),
    BadAnswer("too large for a proxy", .limitExceeded, "", status: 413),
    BadAnswer("too many requests", .requestRateLimited, "", status: 429),
    BadAnswer("forbidden", .permissionFailure, "", status: 403),
    BadAnswer("a redirect", .serverRejectedRequest, "", status: 302),
    BadAnswer("a teapot", .serverRejectedRequest, "", status: 418),
    BadAnswer(
      "an unknown code",
      .serverRejectedRequest,
      "{\"serverErrorCode\":\"MOON_PHASE\",\"reason\":\"full\"}",
      status: 400
    ),
    BadAnswer(
      "an error without a reason",
      .quotaExceeded,
      "{\"serverErrorCode\":\"QUOTA_EXCEEDED\"}",
      status: 413
    ),
    BadAnswer("a reset", .networkFailure, throwing: TransportError(wasSent: true, reason: "x")),
    BadAnswer(
      "no connection",
      .networkUnavailable,
      throwing: TransportError(wasSent: false, reason: "x")
    ),
    BadAnswer("cancellation by the transport", .operationCancelled, throwing: CancellationError()),
    BadAnswer(
      "an error of a layer below",
      .networkFailure,
      throwing: NSError(domain: "elsewhere", code: 4)
    ),
  ]

  static let ofItems: [BadAnswer] = [
    BadAnswer("a record without a name", .internalError, "{\"records\":[{\"recordType\":\"T\"}]}"),
    BadAnswer("a record without a type", .internalError, "{\"records\":[{\"recordName\":\"n\"}]}"),
    BadAnswer(
      "a deleted record",
      .unknownItem,
      "{\"records\":[{\"recordName\":\"n\",\"deleted\":true}]}"
    ),
    BadAnswer(
      "an item's unknown code",
      .serverRejectedRequest,
      "{\"records\":[{\"recordName\":\"n\",\"serverErrorCode\":\"X\",\"reason\":\"y\"}]}"
    ),
    BadAnswer(
      "a conflict without a record",
      .serverRecordChanged,
      "{\"records\":[{\"recordName\":\"n\",\"serverErrorCode\":\"CONFLICT\"}]}"
    ),
  ]
}

@Suite("A bad service")
struct BadServiceTests {
  private let recordID = CKRecord.ID(
    recordName: "n",
    zoneID: CKRecordZone.ID(zoneName: "zone")
  )

  @Test("A fetch maps a bad reply to its error code", arguments: BadAnswer.ofWholeRequests)
  func fetch(bad: BadAnswer) async throws {
    let service = ScriptedService()
    service.answer(bad.answer)
    let database = service.container().privateCloudDatabase
    let error = await #expect(throws: CKError.self) {
      try await database.record(for: recordID)
    }
    #expect(error?.code == bad.code)
    #expect(error?.localizedDescription.isEmpty == false)
  }

  @Test("A record of a bad reply fails with its error code", arguments: BadAnswer.ofItems)
  func item(bad: BadAnswer) async throws {
    let service = ScriptedService()
    service.answer(bad.answer)
    let database = service.container().privateCloudDatabase
    let error = await #expect(throws: CKError.self) {
      try await database.record(for: recordID)
    }
    #expect(error?.code == bad.code)
  }

  @Test(
    "A failed save calls the record's block and the result block once",
    arguments: BadAnswer.ofWholeRequests
  )
  func save(bad: BadAnswer) async throws {
    let service = ScriptedService()
    service.answer(bad.answer)
    let operation = CKModifyRecordsOperation(
      recordsToSave: [CKRecord(recordType: "T", recordID: recordID)]
    )
    let results = Mutex<[CKError.Code?]>([])
    operation.modifyRecordsResultBlock = { result in
      results.withLock { $0.append(result.failure?.code) }
    }
    await withCheckedContinuation { continuation in
      operation.completionBlock = { continuation.resume() }
      service.container().privateCloudDatabase.add(operation)
    }
    #expect(results.withLock { $0 } == [bad.code])
  }

  @Test(
    "Bad replies to other requests fail with their error code, or decode",
    arguments: BadAnswer.ofWholeRequests
  )
  func others(bad: BadAnswer) async throws {
    let service = ScriptedService()
    let container = service.container()
    let database = container.privateCloudDatabase
    let zoneID = recordID.zoneID
    func code(_ body: () async throws -> Void) async -> CKError.Code? {
      service.answer(bad.answer)
      do {
        try await body()
        return nil
      } catch {
        return (error as? CKError)?.code
      }
    }
    // Some of the bad replies are valid for other requests.
    let codes = [
      await code { _ = try await database.allRecordZones() },
      await code { _ = try await database.databaseChanges(since: nil) },
      await code { _ = try await database.recordZoneChanges(inZoneWith: zoneID, since: nil) },
      await code {
        _ = try await database.records(
          matching: CKQuery(recordType: "T", predicate: NSPredicate(value: true))
        )
      },
      await code { _ = try await database.allSubscriptions() },
      await code { _ = try await container.userRecordID() },
    ]
    for code in codes { #expect(code == nil || code == bad.code) }
  }

  @Test("Unknown types and members of a record do not change its known fields")
  func unknownFields() async throws {
    let service = ScriptedService()
    service.answer(
      """
      {"records":[{"recordName":"n","recordType":"T","moon":"full","fields":{
        "good":{"value":"x","type":"STRING"},
        "odd":{"value":{"a":1},"type":"HOLOGRAM"},
        "null":{"value":null,"type":"STRING"},
        "bare":{"value":7}}}]}
      """
    )
    let record = try? await service.container().privateCloudDatabase.record(for: recordID)
    if let record {
      #expect(record["good"] as? String == "x")
      #expect(record["bare"] as? Int == 7)
    }
  }

  @Test("A short retry-after is waited for; a long one is returned and holds later requests")
  func patience() async throws {
    let clock = LeapingClock()
    let service = ScriptedService()
    service.answer("", status: 503, headers: ["retry-after": "1.5"])
    service.answer("{\"records\":[{\"recordName\":\"n\",\"recordType\":\"T\"}]}")
    let patient = service.container(clock: clock, retries: .interactive).privateCloudDatabase
    _ = try await patient.record(for: recordID)
    #expect(clock.slept == [1.5])
    service.answer("", status: 429, headers: ["retry-after": "3600"])
    let error = await #expect(throws: CKError.self) { try await patient.record(for: recordID) }
    #expect(error?.code == .requestRateLimited)
    #expect(error?.retryAfterSeconds == 3600)
    // During the rate limit the next request fails locally with the remaining delay.
    let count = service.requests.count
    try await clock.sleep(seconds: 600)
    let next = await #expect(throws: CKError.self) { try await patient.allRecordZones() }
    #expect(next?.code == .requestRateLimited)
    #expect(next?.retryAfterSeconds == 3000)
    #expect(service.requests.count == count)
    try await clock.sleep(seconds: 3000)
    service.answer("{\"zones\":[]}")
    #expect(try await patient.allRecordZones().isEmpty)
  }

  @Test("Errors contain no tokens", arguments: BadAnswer.ofWholeRequests)
  func secrets(bad: BadAnswer) async throws {
    let service = ScriptedService()
    service.answer(bad.answer)
    let database = service.container(webAuthToken: "secret-token").privateCloudDatabase
    do {
      _ = try await database.record(for: recordID)
    } catch {
      #expect(!"\(error)".contains("secret-token"))
      #expect(!"\((error as NSError).userInfo)".contains("secret-token"))
      #expect(!"\(database) \(database.container)".contains("secret-token"))
    }
  }
}
