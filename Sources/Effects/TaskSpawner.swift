/// Starts concurrent work for synchronous code.
///
/// Only implementations of this protocol create unstructured tasks.
public protocol TaskSpawner: Sendable {
  /// Starts the operation and returns a handle that can cancel it and wait for it.
  @discardableResult
  func spawn(_ operation: @escaping @Sendable () async -> Void) -> SpawnedTask
}

/// A handle on spawned work.
public struct SpawnedTask: Sendable {
  private let task: Task<Void, Never>

  /// Wraps a task.
  public init(_ task: Task<Void, Never>) {
    self.task = task
  }

  /// Asks the work to stop.
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
}
