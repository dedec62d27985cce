#if !canImport(os)
import Foundation

/// A lock around a state, with the interface of Apple's.
///
/// ```swift
/// let count = OSAllocatedUnfairLock(initialState: 0)
/// DispatchQueue.concurrentPerform(iterations: 100) { _ in
///   count.withLock { $0 += 1 }
/// }
/// print(count.withLock { $0 })  // 100
/// ```
public struct OSAllocatedUnfairLock<State>: @unchecked Sendable {
  // Unchecked: the state is only reached inside the lock.

  private final class Storage {
    let lock = NSLock()
    var state: State

    init(state: State) {
      self.state = state
    }
  }

  private let storage: Storage

  /// Creates a lock around a state, which need not be sendable.
  public init(uncheckedState initialState: State) {
    storage = Storage(state: initialState)
  }

  /// Calls a closure with the state inside the lock.
  public func withLockUnchecked<Result>(
    _ body: (inout State) throws -> Result
  ) rethrows -> Result {
    storage.lock.lock()
    defer { storage.lock.unlock() }
    return try body(&storage.state)
  }

  /// Calls a closure with the state inside the lock.
  public func withLock<Result: Sendable>(
    _ body: @Sendable (inout State) throws -> Result
  ) rethrows -> Result {
    try withLockUnchecked(body)
  }
}

extension OSAllocatedUnfairLock where State: Sendable {
  /// Creates a lock around a state.
  public init(initialState: State) {
    self.init(uncheckedState: initialState)
  }
}

extension OSAllocatedUnfairLock where State == Void {
  /// Creates a lock alone.
  public init() {
    self.init(uncheckedState: ())
  }

  /// Calls a closure inside the lock.
  public func withLock<Result: Sendable>(_ body: @Sendable () throws -> Result) rethrows -> Result {
    try withLockUnchecked { _ in try body() }
  }

  /// Waits for the lock and takes it.
  public func lock() {
    storage.lock.lock()
  }

  /// Releases the lock, in the thread that took it.
  public func unlock() {
    storage.lock.unlock()
  }

  /// Takes the lock if it is free, and returns whether it did.
  public func lockIfAvailable() -> Bool {
    storage.lock.try()
  }
}
#endif
