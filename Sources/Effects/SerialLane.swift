import Foundation
import Synchronization

/// A queue that runs one job at a time, in FIFO order.
///
/// A caller of `sync` uses its own thread: it first runs the jobs queued before it and then its
/// own, so the lane makes progress even if every thread of the pool is blocked in `sync`. The owner
/// may enter again. Jobs without a waiting caller are run by one spawned task at a time.
///
/// A thread that has a child context's lane may wait for the parent's lane. If the parent's owner waits
/// for the child in turn, the lane is lent for one body; so it is where two contexts wait for each other of
/// which neither is above the other. See `LaneWaits`.
public final class SerialLane: @unchecked Sendable {
  // Unchecked: `condition` guards all mutable state.
  private enum Entry {
    case job(@Sendable () -> Void)
    case waiter(ThreadKey)
    case done
  }

  /// The lane's name, for debugging.
  public let label: String
  private let tasks: any TaskSpawner
  private let condition = NSCondition()
  private var entries: [Entry] = []
  private var head = 0
  /// The thread that has the lane, or 0.
  ///
  /// It is written under `condition`, and read without it where cycles of waits are searched.
  private let ownerNumber = Atomic<UInt>(0)
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

  /// The thread that has the lane.
  var ownerKey: ThreadKey? { ThreadKey(number: ownerNumber.load(ordering: .acquiring)) }

  private var owner: UInt {
    get { ownerNumber.load(ordering: .relaxed) }
    set { ownerNumber.store(newValue, ordering: .releasing) }
  }

  private var isOwnedByCaller: Bool { owner == ThreadKey.current.number }

  /// Runs the body on the calling thread after the jobs queued before it, and returns its result.
  ///
  /// `isForParent` says whether the caller has the lane of a child context of this lane's context; it
  /// is evaluated only if the caller has to wait.
  public func sync<Result>(
    isForParent: @autoclosure () -> Bool = false,
    _ body: () throws -> Result
  ) rethrows -> Result {
    condition.lock()
    if isOwnedByCaller {
      condition.unlock()
      return try body()
    }
    let isLent = (owner != 0 || head < entries.count) && waitForTurn(isForParent: isForParent())
    let lender = isLent ? owner : 0
    owner = ThreadKey.current.number
    condition.unlock()
    defer {
      condition.lock()
      if isLent {
        owner = lender
        condition.unlock()
      } else {
        release()
      }
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
  /// The result is whether the lane is lent: its owner waits for a lane that the caller has. The lock is
  /// held at the call and at the return.
  private func waitForTurn(isForParent: Bool) -> Bool {
    // Not a number for each call: a thread that runs another one's block while it waits may wait here
    // twice, and the inner wait ends first.
    let thread = ThreadKey.current
    entries.append(.waiter(thread))
    while true {
      if owner == 0 {
        switch entries[head] {
        case .job:
          runHead()
          continue
        case .waiter(thread):
          popHead()
          return false
        case .waiter, .done: break
        }
      }
      if waitForChange(isForParent) {
        leave(thread)
        return true
      }
    }
  }

  /// Waits for a change of the lane, and resolves a cycle of waits; true if the lane is lent.
  ///
  /// The lock is held at the call and at the return.
  private func waitForChange(_ isForParent: Bool) -> Bool {
    let resolution = LaneWaits.shared.begin(
      LaneWaits.Wait(
        goal: .lane(self),
        isForParent: isForParent,
        isOnMainQueue: MainQueue.isCurrent
      )
    )
    switch resolution {
    case nil: condition.wait()
    case let resolution? where !resolution.isOwn:
      // The other lane's lock is taken without this one: two threads may do this at once.
      condition.unlock()
      resolution.lane?.wake()
      condition.lock()
    default: break
    }
    switch LaneWaits.shared.end() {
    case nil: return false
    case .entry: return true
    case .call(let call):
      condition.unlock()
      call.run()
      condition.lock()
      return false
    }
  }

  /// Wakes the threads that wait for the lane.
  func wake() {
    condition.lock()
    condition.broadcast()
    condition.unlock()
  }

  /// Takes one wait of a thread out of the queue.
  private func leave(_ thread: ThreadKey) {
    let place = entries.lastIndex { entry in
      if case .waiter(thread) = entry { return true }
      return false
    }
    if let place { entries.remove(at: place) }
  }

  /// Runs the job at the head on this thread.
  ///
  /// The lock is held at the call and at the return.
  private func runHead() {
    guard case .job(let body) = entries[head] else { return }
    popHead()
    owner = ThreadKey.current.number
    condition.unlock()
    body()
    condition.lock()
    owner = 0
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
    owner = 0
    condition.broadcast()
    unlockAndDrainIfNeeded()
  }

  /// Spawns a drain if the head of a free lane is a job, which a waiter may run first; unlocks.
  private func unlockAndDrainIfNeeded() {
    var mustSpawn = false
    if owner == 0, !isDrainScheduled, head < entries.count, case .job = entries[head] {
      isDrainScheduled = true
      mustSpawn = true
    }
    condition.unlock()
    if mustSpawn { tasks.spawn { self.drain() } }
  }

  /// Runs queued jobs until the head is a waiter, the lane is owned, or the queue is empty.
  private func drain() {
    condition.lock()
    while owner == 0, head < entries.count, case .job = entries[head] { runHead() }
    isDrainScheduled = false
    unlockAndDrainIfNeeded()
  }
}
