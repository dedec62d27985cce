import Foundation

/// Runs the body on a thread of its own.
///
/// Worlds take seconds and wait for one another, and the pool has a thread for each processor: on two
/// processors, worlds on the pool would leave no thread for the tests that run beside them.
func onOwnThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: body()) }
  }
}
