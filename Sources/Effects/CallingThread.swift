import Foundation

/// Runs asynchronous work on the thread that waits for it.
///
/// A synchronous function that blocks a thread of the concurrent pool until a task has ended may wait for
/// ever: the pool has as many threads as the machine has processors, and the task needs one of them. Here
/// the thread that waits runs the task's jobs itself.
package final class CallingThread: TaskExecutor, @unchecked Sendable {
  // Unchecked: `condition` guards the rest.
  private let condition = NSCondition()
  private var jobs: [UnownedJob] = []
  private var isFinished = false

  private init() {}

  /// Runs the operation to its end on the calling thread, and returns its result.
  package static func wait<Result: Sendable>(
    for operation: @escaping @Sendable () async throws -> Result
  ) throws -> Result {
    let thread = CallingThread()
    let outcome = Outcome<Result>()
    Task.detached(executorPreference: thread) {
      do {
        outcome.result = .success(try await operation())
      } catch {
        outcome.result = .failure(error)
      }
      thread.finish()
    }
    thread.run()
    guard let result = outcome.result else { throw CancellationError() }
    return try result.get()
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    condition.lock()
    jobs.append(job)
    condition.signal()
    condition.unlock()
  }

  private func run() {
    while let job = next() { job.runSynchronously(on: asUnownedTaskExecutor()) }
  }

  /// The next job; nil when the operation has ended and nothing of it is left.
  private func next() -> UnownedJob? {
    condition.lock()
    defer { condition.unlock() }
    while jobs.isEmpty, !isFinished { condition.wait() }
    return jobs.isEmpty ? nil : jobs.removeFirst()
  }

  private func finish() {
    condition.lock()
    isFinished = true
    condition.signal()
    condition.unlock()
  }

  private final class Outcome<Result: Sendable>: @unchecked Sendable {
    // Unchecked: set and read by the jobs and the waiting code of one thread.
    var result: Swift.Result<Result, any Error>?
  }
}
