import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("Operation configurations")
struct OperationSettingTests {
  /// A clock whose sleeps last until the task is cancelled, except the short ones.
  private struct ShortClock: EffectClock {
    /// Sleeps up to this many seconds end at once.
    var over: Double
    var now: Date { Date(timeIntervalSince1970: 0) }
    var uptime: Double { 0 }
    func sleep(seconds: Double) async throws {
      guard seconds > over else { return }
      let (stream, continuation) = AsyncStream<Void>.makeStream()
      for await _ in stream {}
      withExtendedLifetime(continuation) {}
      try Task.checkCancellation()
    }
  }

  /// A service that never answers.
  private struct Silence: CloudKitTransport {
    func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
      let (stream, continuation) = AsyncStream<Void>.makeStream()
      for await _ in stream {}
      withExtendedLifetime(continuation) {}
      throw CancellationError()
    }
  }

  private func silentContainer(waitsOver: Double) -> CKContainer {
    CKContainer(
      identifier: "iCloud.test",
      configuration: CKContainerConfiguration(
        url: URL(string: "http://service.test"),
        apiToken: "api",
        webAuthToken: "person"
      ),
      transport: Silence(),
      effects: Effects(
        clock: ShortClock(over: waitsOver),
        randomness: SeededRandomness(seed: 1),
        tasks: PoolTaskSpawner()
      ),
      clientIdentifier: "d",
      retries: .never
    )
  }

  @Test("A request that takes longer than its limit is a networkFailure")
  func requestLimit() async throws {
    let configuration = CKOperation.Configuration()
    configuration.timeoutIntervalForRequest = 5
    let database = silentContainer(waitsOver: 5).privateCloudDatabase
    let error = await #expect(throws: CKError.self) {
      try await database.configuredWith(configuration: configuration) { database in
        try await database.allRecordZones()
      }
    }
    #expect(error?.code == .networkFailure)
  }

  @Test("A group's time limit applies to operations without their own")
  func groupLimit() async throws {
    let group = CKOperationGroup()
    let configuration = CKOperation.Configuration()
    configuration.timeoutIntervalForResource = 3
    group.defaultConfiguration = configuration
    let container = silentContainer(waitsOver: 3)
    let operation = CKFetchRecordZonesOperation.fetchAllRecordZonesOperation()
    operation.group = group
    let error = await withCheckedContinuation { continuation in
      operation.fetchRecordZonesResultBlock = {
        continuation.resume(returning: $0.failure)
      }
      container.privateCloudDatabase.add(operation)
    }
    #expect(error?.code == .networkFailure)
  }

  @Test("A group's name, sizes and identifier survive copies and archives")
  func groups() throws {
    let group = CKOperationGroup()
    group.name = "first sync"
    group.quantity = 3
    group.expectedSendSize = .megabytes
    group.expectedReceiveSize = .gigabytes
    let data = try NSKeyedArchiver.archivedData(withRootObject: group, requiringSecureCoding: true)
    let archived = try NSKeyedUnarchiver.unarchivedObject(
      ofClass: CKOperationGroup.self,
      from: data
    )
    for copy in [archived, group.copy() as? CKOperationGroup] {
      let copy = try #require(copy)
      #expect(copy.operationGroupID == group.operationGroupID)
      #expect(copy.name == "first sync")
      #expect(copy.quantity == 3)
      #expect(copy.expectedSendSize == .megabytes)
      #expect(copy.expectedReceiveSize == .gigabytes)
    }
    #expect(CKOperationGroup().operationGroupID != group.operationGroupID)
  }

  @Test("A long-lived operation can be found by its identifier until it ends")
  func longLived() async throws {
    let container = silentContainer(waitsOver: 0)
    let operation = CKFetchRecordZonesOperation.fetchAllRecordZonesOperation()
    operation.configuration.isLongLived = true
    let persisted = Mutex(false)
    operation.longLivedOperationWasPersistedBlock = { persisted.withLock { $0 = true } }
    let ended = AsyncStream<CKError?>.makeStream()
    operation.fetchRecordZonesResultBlock = { ended.continuation.yield($0.failure) }
    let started = AsyncStream<Void>.makeStream()
    operation.longLivedOperationWasPersistedBlock = {
      persisted.withLock { $0 = true }
      started.continuation.yield()
    }
    container.privateCloudDatabase.add(operation)
    for await _ in started.stream { break }
    #expect(persisted.withLock { $0 })
    #expect(try await container.allLongLivedOperationIDs().contains(operation.operationID))
    #expect(try await container.longLivedOperation(for: operation.operationID) === operation)
    operation.cancel()
    for await error in ended.stream {
      #expect(error?.code == .operationCancelled)
      break
    }
  }

  @Test("Cancelling an operation before or after its start calls the result block once")
  func cancelling() async throws {
    let container = silentContainer(waitsOver: 0)
    for delay in 0..<3 {
      let operation = CKFetchRecordsOperation(recordIDs: [CKRecord.ID(recordName: "r")])
      let count = Mutex(0)
      let code = Mutex<CKError.Code?>(nil)
      operation.fetchRecordsResultBlock = { result in
        count.withLock { $0 += 1 }
        code.withLock { $0 = result.failure?.code }
      }
      if delay == 0 { operation.cancel() }
      await withCheckedContinuation { continuation in
        operation.completionBlock = { continuation.resume() }
        container.privateCloudDatabase.add(operation)
        if delay > 0 { operation.cancel() }
        if delay > 1 { operation.cancel() }
      }
      #expect(count.withLock { $0 } == 1)
      #expect(code.withLock { $0 } == .operationCancelled)
      #expect(operation.isFinished)
    }
  }
}
