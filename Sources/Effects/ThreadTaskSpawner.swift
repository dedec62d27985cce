import Dispatch

/// Spawns on a thread of its own, which is there while there is work.
///
/// The pool has as many threads as the machine has processors: one that waits for the disk leaves a
/// processor idle, and as many as there are stop everything.
final class ThreadTaskSpawner: TaskSpawner, TaskExecutor {
  private let queue: DispatchQueue

  init(label: String) { queue = DispatchQueue(label: label) }

  @discardableResult
  func spawn(_ operation: @escaping @Sendable () async -> Void) -> SpawnedTask {
    SpawnedTask(Task.detached(executorPreference: self, operation: operation))
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
