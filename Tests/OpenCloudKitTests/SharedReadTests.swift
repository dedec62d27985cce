import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("Coalescing of equal concurrent reads")
struct SharedReadTests {
  /// A service that answers when the test releases the replies.
  private final class Slow: CloudKitTransport {
    private struct State {
      var requests: [String] = []
      var waiting: [CheckedContinuation<Void, Never>] = []
      var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var verbs: [String] {
      state.withLock { $0.requests }.map { path in
        path.prefix { $0 != "?" }.split(separator: "/").suffix(2).joined(separator: "/")
      }
    }

    func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
      await withCheckedContinuation { continuation in
        let arrived = state.withLock { state in
          state.requests.append(request.path)
          state.waiting.append(continuation)
          let arrived = state.watchers.filter { $0.count <= state.requests.count }
          state.watchers.removeAll { $0.count <= state.requests.count }
          return arrived
        }
        for watcher in arrived { watcher.continuation.resume() }
      }
      try Task.checkCancellation()
      return WebServiceResponse(
        status: 200,
        body: Data("{\"records\":[{\"recordName\":\"n\",\"recordType\":\"T\"}]}".utf8)
      )
    }

    /// Waits until a number of requests was received.
    func requests(_ count: Int) async {
      await withCheckedContinuation { continuation in
        let isThere = state.withLock { state in
          guard state.requests.count < count else { return true }
          state.watchers.append((count, continuation))
          return false
        }
        if isThere { continuation.resume() }
      }
    }

    func answerAll() {
      let waiting = state.withLock { state in
        defer { state.waiting = [] }
        return state.waiting
      }
      for continuation in waiting { continuation.resume() }
    }
  }

  private let slow = Slow()

  private func database() -> CKDatabase {
    CKContainer(
      identifier: "iCloud.test",
      configuration: CKContainerConfiguration(
        url: URL(string: "http://service.test"),
        apiToken: "api",
        webAuthToken: "person"
      ),
      transport: slow,
      retries: .never
    ).privateCloudDatabase
  }

  private let recordID = CKRecord.ID(recordName: "n")

  /// Waits until a number of reads wait for another read's reply.
  private func waiting(_ count: Int, in database: CKDatabase) async throws {
    let client = try database.container.client()
    while client.waitingReads < count { await Task.yield() }
  }

  @Test("Equal concurrent reads share one request, and each caller gets its own record")
  func shared() async throws {
    let database = database()
    let first = Task { try await database.record(for: recordID) }
    await slow.requests(1)
    let others = (0..<5).map { _ in Task { try await database.record(for: recordID) } }
    try await waiting(5, in: database)
    slow.answerAll()
    let record = try await first.value
    record["title"] = "mine"
    for other in others {
      let copy = try await other.value
      #expect(copy !== record)
      #expect(copy["title"] == nil)
    }
    #expect(slow.verbs == ["records/lookup"])
  }

  @Test("A read after the device's own save is sent as a new request")
  func afterSave() async throws {
    let database = database()
    let early = Task { try await database.record(for: recordID) }
    await slow.requests(1)
    let save = Task { try await database.save(CKRecord(recordType: "T", recordID: recordID)) }
    await slow.requests(2)
    slow.answerAll()
    _ = try await (early.value, save.value)
    let again = Task { try await database.record(for: recordID) }
    await slow.requests(3)
    slow.answerAll()
    _ = try await again.value
    #expect(slow.verbs == ["records/lookup", "records/modify", "records/lookup"])
  }

  @Test("Cancelling the leader of a shared read does not cancel the followers")
  func cancellation() async throws {
    let database = database()
    let first = Task { try await database.record(for: recordID) }
    await slow.requests(1)
    let second = Task { try await database.record(for: recordID) }
    try await waiting(1, in: database)
    first.cancel()
    slow.answerAll()
    let outcome = await first.result
    #expect(throws: CKError.self) { try outcome.get() }
    // The follower sends its own request.
    await slow.requests(2)
    slow.answerAll()
    #expect(try await second.value.recordID == recordID)
  }

  @Test("A follower of a shared read that is cancelled ends at once")
  func cancelledWait() async throws {
    let database = database()
    let first = Task { try await database.record(for: recordID) }
    await slow.requests(1)
    let second = Task { try await database.record(for: recordID) }
    try await waiting(1, in: database)
    second.cancel()
    let outcome = await second.result
    let error = #expect(throws: CKError.self) { try outcome.get() }
    #expect(error?.code == .operationCancelled)
    slow.answerAll()
    #expect(try await first.value.recordID == recordID)
  }
}
