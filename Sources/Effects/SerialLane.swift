import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A queue that runs one piece of work at a time, in the order it came.
///
/// Waiting callers run their work on their own thread, so a caller never needs a thread of the
/// pool: with every pool thread blocked in `sync`, the lane still makes progress. The owner may
/// enter again. Work that nobody waits for is drained by one spawned task at a time.
public final class SerialLane: @unchecked Sendable {
  // Unchecked: `condition` guards all mutable state.
  private enum Entry {
    case job(@Sendable () -> Void)
    case waiter(Int)
  }

  /// A name for people.
  public let label: String
  private let tasks: any TaskSpawner
  private let condition = NSCondition()
  private var entries: [Entry] = []
  private var head = 0
  private var owner: pthread_t?
  private var isHeld = false
  private var depth = 0
  private var nextTicket = 0
  private var admitted: Int?

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
    guard isHeld, let owner else { return false }
    return pthread_equal(owner, pthread_self()) != 0
  }

  /// Runs the body on the calling thread when its turn has come, and returns its result.
  public func sync<Result>(_ body: () throws -> Result) rethrows -> Result {
    condition.lock()
    if isOwnedByCaller {
      depth += 1
      condition.unlock()
      defer {
        condition.lock()
        depth -= 1
        condition.unlock()
      }
      return try body()
    }
    if isHeld || head < entries.count || admitted != nil {
      let ticket = nextTicket
      nextTicket += 1
      entries.append(.waiter(ticket))
      while admitted != ticket { condition.wait() }
      admitted = nil
    }
    isHeld = true
    owner = pthread_self()
    condition.unlock()
    defer { release() }
    return try body()
  }

  /// Queues the body and returns at once.
  public func async(_ body: @escaping @Sendable () -> Void) {
    condition.lock()
    entries.append(.job(body))
    let mustDrain = !isHeld && admitted == nil && head == entries.count - 1
    if mustDrain { isHeld = true }
    condition.unlock()
    if mustDrain { spawnDrain() }
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

  /// Gives the lane to the next in line: a waiter is admitted, jobs are drained by a task.
  private func release() {
    condition.lock()
    owner = nil
    let mustDrain = passOn()
    condition.unlock()
    if mustDrain { spawnDrain() }
  }

  /// With the lock held. Returns whether a drain must be spawned; the lane then stays held for it.
  private func passOn() -> Bool {
    guard head < entries.count else {
      entries.removeAll(keepingCapacity: true)
      head = 0
      isHeld = false
      return false
    }
    switch entries[head] {
    case .waiter(let ticket):
      advance()
      isHeld = false
      admitted = ticket
      condition.broadcast()
      return false
    case .job:
      isHeld = true
      return true
    }
  }

  private func advance() {
    head += 1
    if head > 256, head * 2 > entries.count {
      entries.removeFirst(head)
      head = 0
    }
  }

  private func spawnDrain() {
    tasks.spawn { self.drain() }
  }

  /// Runs queued jobs until a waiter is next or nothing is left.
  private func drain() {
    condition.lock()
    while head < entries.count, case .job(let body) = entries[head] {
      // The slot lets go of its closure: it may hold the last reference to large things.
      entries[head] = .waiter(-1)
      advance()
      owner = pthread_self()
      condition.unlock()
      body()
      condition.lock()
      owner = nil
    }
    let mustDrain = passOn()
    condition.unlock()
    if mustDrain { spawnDrain() }
  }
}
