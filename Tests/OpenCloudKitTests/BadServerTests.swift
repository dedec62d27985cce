import Foundation
import OpenCloudKit
import Synchronization
import Testing

/// As `BadServiceTests`, but over sockets: the failures of a connection, and the same failures of
/// replies.
@Suite("A bad server behind a socket")
struct BadServerTests {
  private static let recordID = CKRecord.ID(
    recordName: "n",
    zoneID: CKRecordZone.ID(zoneName: "zone")
  )
  private static let good = #"{"records":[{"recordName":"n","recordType":"T"}]}"#

  private func fetch(_ server: RawServer) async -> CKError? {
    await #expect(throws: CKError.self) {
      try await server.container().privateCloudDatabase.record(for: Self.recordID)
    }
  }

  @Test(
    "A fetch over a socket fails with the same code as in process",
    arguments: BadAnswer.ofWholeRequests.filter { $0.reply != nil } + BadAnswer.ofItems
  )
  func alike(bad: BadAnswer) async throws {
    let reply = try #require(bad.reply)
    let server = try RawServer(RawServer.Answer(status: reply.status, reply.body))
    defer { server.stop() }
    #expect(await fetch(server)?.code == bad.code)
    #expect(server.requestCount == 1)
  }

  @Test(
    "An incomplete or invalid HTTP reply is a networkFailure",
    arguments: [
      "", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n{\"records\":[",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n{\"records\":[",
      "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}", "SSH-2.0-OpenSSH_9.6\r\n",
      "HTTP/1.1 OK\r\n\r\n", "\u{0}\u{1}\u{2}",
    ]
  )
  func broken(reply: String) async throws {
    let server = try RawServer(RawServer.Answer(raw: reply))
    defer { server.stop() }
    #expect(await fetch(server)?.code == .networkFailure)
    #expect(server.requestCount == 1)
  }

  @Test("A reply shorter than its Content-Length is a networkFailure")
  func tooShort() async throws {
    let server = try RawServer(
      RawServer.Answer(Self.good, length: Self.good.utf8.count + 10)
    )
    defer { server.stop() }
    #expect(await fetch(server)?.code == .networkFailure)
  }

  @Test("A reply is cut at its Content-Length")
  func tooLong() async throws {
    let server = try RawServer(
      RawServer.Answer(Self.good, length: Self.good.utf8.count - 10)
    )
    defer { server.stop() }
    #expect(await fetch(server)?.code == .internalError)
  }

  @Test("A duplicated reply is ignored, and is not taken for the reply to a later request")
  func twice() async throws {
    let first = RawServer.Answer(Self.good, hangsUp: false)
    var doubled = first
    doubled.bytes +=
      RawServer.Answer(
        Self.good.replacingOccurrences(of: "\"n\"", with: "\"stray\""),
        hangsUp: false
      ).bytes
    let server = try RawServer(doubled, first)
    defer { server.stop() }
    // The client may close the connection after the second request has taken it: that is repeated.
    let database = server.container(retries: .interactive).privateCloudDatabase
    #expect(try await database.record(for: Self.recordID).recordID == Self.recordID)
    #expect(try await database.record(for: Self.recordID).recordID == Self.recordID)
  }

  @Test("A request to a silent server ends at its time limit, and calls its block once")
  func late() async throws {
    let server = try RawServer(RawServer.Answer(raw: "HTTP/1.1 200 OK\r\n", hangsUp: false))
    defer { server.stop() }
    let operation = CKFetchRecordsOperation(recordIDs: [Self.recordID])
    operation.configuration.timeoutIntervalForRequest = 0.05
    let codes = Mutex<[CKError.Code?]>([])
    operation.fetchRecordsResultBlock = { result in
      codes.withLock { $0.append(result.failure?.code) }
    }
    await withCheckedContinuation { continuation in
      operation.completionBlock = { continuation.resume() }
      server.container().privateCloudDatabase.add(operation)
    }
    #expect(codes.withLock { $0 } == [.networkFailure])
  }

  @Test("A save whose connection is closed calls its block once and is not retried")
  func savedOnce() async throws {
    let server = try RawServer(RawServer.Answer(raw: ""))
    defer { server.stop() }
    let operation = CKModifyRecordsOperation(
      recordsToSave: [CKRecord(recordType: "T", recordID: Self.recordID)]
    )
    let codes = Mutex<[CKError.Code?]>([])
    operation.perRecordSaveBlock = { _, result in
      codes.withLock { $0.append(result.failure?.code) }
    }
    operation.modifyRecordsResultBlock = { result in
      codes.withLock { $0.append(result.failure?.code) }
    }
    await withCheckedContinuation { continuation in
      operation.completionBlock = { continuation.resume() }
      server.container(retries: .never).privateCloudDatabase.add(operation)
    }
    #expect(server.requestCount == 1)
    #expect(codes.withLock { $0.last } == .networkFailure)
    #expect(codes.withLock { $0.count } <= 2)
  }
}
