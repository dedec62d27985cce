import Effects
import Foundation
import Testing

@Suite("Waiting for asynchronous work")
struct CallingThreadTests {
  private struct Broken: Error {}

  @Test("The work runs on the waiting thread, also after it was suspended")
  func ownThread() throws {
    let caller = pthread_self()
    let isSame = try CallingThread.wait {
      try await Task.sleep(for: .milliseconds(1))
      return onThread(caller)
    }
    #expect(isSame)
  }

  @Test("An error of the work reaches the caller")
  func failure() {
    #expect(throws: Broken.self) {
      try CallingThread.wait {
        await Task.yield()
        throw Broken()
      }
    }
  }

  @Test("More callers wait at once than the pool has threads")
  func fullPool() async throws {
    let count = 2 * ProcessInfo.processInfo.activeProcessorCount + 2
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 1...count {
        group.addTask {
          try CallingThread.wait {
            try await Task.sleep(for: .milliseconds(20))
            return number
          }
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(sum == count * (count + 1) / 2)
  }
}

/// Whether the caller runs on a thread.
private func onThread(_ thread: pthread_t) -> Bool { pthread_equal(thread, pthread_self()) != 0 }
