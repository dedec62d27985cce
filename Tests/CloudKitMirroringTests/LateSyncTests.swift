import CloudKitMirroring
import CloudKitTesting
import Synchronization
import Testing

/// Calls that come while a round is running.
@Suite("Syncs that are asked for during a round")
struct LateSyncTests {
  private final class LateCall: Sendable {
    private let task = Mutex<Task<Void, any Error>?>(nil)

    /// Asks for a sync, and returns whether it is the first call.
    func begin(_ mirror: StoreMirror) -> Bool {
      task.withLock { task in
        guard task == nil else { return false }
        // Runs at once until the call waits.
        task = Task.immediate { try await mirror.syncNow() }
        return true
      }
    }

    func finish() async throws { try await task.withLock { $0 }?.value }
  }

  @Test("A sync that is asked for while a round fails has a round of its own")
  func late() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    let (mirror, call) = (phone.mirror, LateCall())
    phone.cloud.onZoneChanges { _ in
      if call.begin(mirror) { throw CloudFailure.unreachable(reason: "The device is offline.") }
      return nil
    }
    await #expect(throws: CloudFailure.self) { try await mirror.syncNow() }
    try await call.finish()
    try await phone.quit()
  }
}
