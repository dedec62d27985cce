import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A queue that runs one job at a time, in FIFO order.
///
/// A caller of `sync` uses its own thread: it first runs the jobs queued before it and then its
/// own, so the lane makes progress even if every thread of the pool is blocked in `sync`. The owner
/// may enter again. Jobs without a waiting caller are run by one spawned task at a time.
public final class SerialLane: @unchecked Sendable {
  // Unchecked: `condition` guards all mutable state.
  private enum Entry {
    case job(@Sendable () -> Void)
    case waiter(Int)
    case done
  }

  /// The lane's name, for debugging.
  public let label: String
  private let tasks: any TaskSpawner
  private let condition = NSCondition()
  private var entries: [Entry] = []
  private var head = 0
  private var owner: pthread_t?
  private var nextTicket = 0
  private var isDrainScheduled = false

  /// Creates a lane.
  public init(label: String, tasks: any TaskSpawner) {
    self.label = label
    self.tasks = tasks
  }

  /// Whether the calling thread owns the lane now.
  public var isCurrent: Bool {
    condition.lock()
    defer { condition.unlock() }
    return isOwnedByCaller
  }

  private var isOwnedByCaller: Bool {
    guard let owner else { return false }
    return pthread_equal(owner, pthread_self()) != 0
  }

  /// Runs the body on the calling thread after the jobs queued before it, and returns its result.
  public func sync<Result>(_ body: () throws -> Result) rethrows -> Result {
    condition.lock()
    if isOwnedByCaller {
      condition.unlock()
      return try body()
    }
    if owner != nil || head < entries.count { waitForTurn() }
    owner = pthread_self()
    condition.unlock()
    defer {
      condition.lock()
      release()
    }
    return try body()
  }

  /// Queues the body and returns at once.
  public func async(_ body: @escaping @Sendable () -> Void) {
    condition.lock()
    entries.append(.job(body))
    unlockAndDrainIfNeeded()
  }

  /// Queues the body and suspends until it has run.
  public func run<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      async {
        continuation.resume(with: Swift.Result { try body() })
      }
    }
  }

  /// Queues the caller, and runs the jobs before it while no other thread runs them.
  ///
  /// The lock is held at the call and at the return.
  private func waitForTurn() {
    let ticket = nextTicket
    nextTicket += 1
    entries.append(.waiter(ticket))
    while true {
      guard owner == nil else {
        condition.wait()
        continue
      }
      switch entries[head] {
      case .job: runHead()
      case .waiter(ticket):
        popHead()
        return
      case .waiter, .done: condition.wait()
      }
    }
  }

  /// Runs the job at the head on this thread.
  ///
  /// The lock is held at the call and at the return.
  private func runHead() {
    guard case .job(let body) = entries[head] else { return }
    popHead()
    owner = pthread_self()
    condition.unlock()
    body()
    condition.lock()
    owner = nil
    condition.broadcast()
  }

  private func popHead() {
    // Clears the slot, which releases its closure: it may hold the last reference to large objects.
    entries[head] = .done
    head += 1
    if head == entries.count {
      entries.removeAll(keepingCapacity: true)
      head = 0
    } else if head > 256, head * 2 > entries.count {
      entries.removeFirst(head)
      head = 0
    }
  }

  /// Releases the lane to the next entry, and unlocks; the lock is held at the call.
  private func release() {
    owner = nil
    condition.broadcast()
    unlockAndDrainIfNeeded()
  }

  /// Spawns a drain if the head of a free lane is a job, which a waiter may run first; unlocks.
  private func unlockAndDrainIfNeeded() {
    var mustSpawn = false
    if owner == nil, !isDrainScheduled, head < entries.count, case .job = entries[head] {
      isDrainScheduled = true
      mustSpawn = true
    }
    condition.unlock()
    if mustSpawn { tasks.spawn { self.drain() } }
  }

  /// Runs queued jobs until the head is a waiter, the lane is owned, or the queue is empty.
  private func drain() {
    condition.lock()
    while owner == nil, head < entries.count, case .job = entries[head] { runHead() }
    isDrainScheduled = false
    unlockAndDrainIfNeeded()
  }
}
