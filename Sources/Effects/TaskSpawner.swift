/// Starts concurrent work for synchronous code.
///
/// Only implementations of this protocol create unstructured tasks.
public protocol TaskSpawner: Sendable {
  /// Starts the operation and returns a handle that can cancel it and wait for it.
  @discardableResult
  func spawn(_ operation: @escaping @Sendable () async -> Void) -> SpawnedTask

  /// A spawner for work that blocks its thread while it waits for a disk or for another process; by
  /// default this one.
  func waiting(_ label: String) -> any TaskSpawner
}

extension TaskSpawner {
  /// This spawner: its tasks may block.
  public func waiting(_ label: String) -> any TaskSpawner { self }
}

/// A handle of spawned work.
public struct SpawnedTask: Sendable {
  private let task: Task<Void, Never>

  /// Wraps a task.
  public init(_ task: Task<Void, Never>) {
    self.task = task
  }

  /// Requests cancellation.
  public func cancel() { task.cancel() }

  /// Waits until the work has ended.
  public func finish() async { await task.value }
}

/// Spawns on the concurrent pool.
public struct PoolTaskSpawner: TaskSpawner {
  /// Creates the spawner.
  public init() {}

  /// Starts the operation as a detached task.
  @discardableResult
  public func spawn(_ operation: @escaping @Sendable () async -> Void) -> SpawnedTask {
    SpawnedTask(Task.detached(operation: operation))
  }

  /// A spawner with its own thread.
  public func waiting(_ label: String) -> any TaskSpawner { ThreadTaskSpawner(label: label) }
}
