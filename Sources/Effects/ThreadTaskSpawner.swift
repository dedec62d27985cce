import Dispatch

/// Spawns on its own thread, which exists while there is work.
///
/// The pool has as many threads as the machine has processors: a thread that waits for the disk
/// leaves a processor idle, and if all of them wait, nothing runs.
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
