import CloudKitMirroring
import CloudKitTesting
import OpenCoreData
import Synchronization
import Testing

/// Batches whose replies a device does not receive, or that the server refuses.
extension ScriptedDevice {
  /// The next batch is executed and its reply lost; the device reads nothing, and its repetitions of the batch are
  /// not taken, until the test says otherwise.
  func saveWithoutReply(_ body: (NSManagedObjectContext) throws -> Void) async throws {
    cloud.onModify { [cloud, faults] _ in
      faults.add(.loseReply, to: "records/modify")
      faults.add(.loseRequest, to: "changes", count: .max)
      cloud.onModify { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: 0) }
      return nil
    }
    try save(body)
    await #expect(throws: (any Error).self) { try await mirror.syncNow() }
    #expect(try mirror.read { try $0.openBatch() } != nil)
  }

  /// The device reads again, and none of its batches is taken.
  func importOnly() async throws {
    cloud.onModify { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: 0) }
    faults.clear()
    // The first call may join a round that began before.
    for _ in 0..<2 {
      await #expect(throws: (any Error).self) { try await mirror.syncNow() }
    }
    #expect(try mirror.read { try $0.openBatch() } != nil)
  }

  /// The server refuses the next requests with batches, and then takes all.
  func refuseBatches(_ failure: CloudFailure, times: Int = 1) {
    let count = Mutex(0)
    cloud.onModify { _ in
      let number = count.withLock { count in
        count += 1
        return count
      }
      guard number <= times else { return nil }
      throw failure
    }
    faults.clear()
  }

  /// All requests succeed.
  func acceptAll() {
    cloud.onModify(nil)
    faults.clear()
  }

  /// Syncs this device and another one until neither has changes for the other.
  func settle(with other: TestDevice) async throws {
    for _ in 0..<3 {
      try await sync()
      try await other.sync()
    }
  }
}
