import CloudKitWebServices
import Effects
import Synchronization

/// Runs reads that may examine many records on a few threads besides the pool, so that slow reads
/// never keep the pool from other requests.
///
/// A reader is a user, or one site of anonymous callers. One reader has no more than half of the
/// threads and a bounded number of places in the queue. Threads that become free go to the readers
/// in turn, so a reader with many waiting reads delays another reader by one read at most for each
/// thread. One thread is left to look-ups, however many scans there are, and a queued read ends
/// with its time.
final class ReadQueue: Sendable {
  enum Kind: Sendable {
    /// Finds rows by their keys.
    case lookup
    /// Examines records one after the other: a query, a feed, an export, the filling of an index.
    case scan
  }

  private struct Waiter {
    var id: UInt64
    var kind: Kind
    var control: ReadControl?
    var resume: CheckedContinuation<Lane, any Error>
  }

  private struct State {
    var idle: [Lane]
    var running: [String: Int] = [:]
    /// The running scans.
    var scans = 0
    /// Whether a task ends the queued reads whose time is over.
    var isWatched = false
    var waiting: [String: [Waiter]] = [:]
    /// The readers with queued reads, the next in turn first.
    var turns: [String] = []
    var count = 0
    var nextID: UInt64 = 0

    mutating func enqueue(_ waiter: Waiter, of reader: String) {
      if waiting[reader, default: []].isEmpty { turns.append(reader) }
      waiting[reader, default: []].append(waiter)
      count += 1
    }

    /// Removes a queued read, by its index among those of its reader.
    mutating func remove(at index: Int, of reader: String) -> Waiter? {
      guard var own = waiting[reader], own.indices.contains(index) else { return nil }
      let waiter = own.remove(at: index)
      waiting[reader] = own.isEmpty ? nil : own
      if own.isEmpty { turns.removeAll { $0 == reader } }
      count -= 1
      return waiter
    }

    func mayStart(_ kind: Kind, of reader: String, _ most: Most) -> Bool {
      running[reader, default: 0] < most.perReader && (kind == .lookup || scans < most.scans)
    }

    mutating func start(_ kind: Kind, of reader: String) {
      running[reader, default: 0] += 1
      if kind == .scan { scans += 1 }
    }

    mutating func end(_ kind: Kind, of reader: String) {
      let left = running[reader, default: 1] - 1
      running[reader] = left > 0 ? left : nil
      if kind == .scan { scans -= 1 }
    }

    /// Removes the next read that may start; its reader is then last in turn.
    mutating func next(_ most: Most) -> Waiter? {
      for (turn, reader) in turns.enumerated() {
        let index = waiting[reader]?.firstIndex { mayStart($0.kind, of: reader, most) }
        guard let index else { continue }
        turns.remove(at: turn)
        turns.append(reader)
        guard let waiter = remove(at: index, of: reader) else { return nil }
        start(waiter.kind, of: reader)
        return waiter
      }
      return nil
    }

    /// Removes the queued reads whose time is over.
    mutating func removeLate() -> [Waiter] {
      var late: [Waiter] = []
      for reader in turns {
        for index in (waiting[reader] ?? []).indices.reversed()
        where waiting[reader]?[index].control?.isOver == true {
          if let waiter = remove(at: index, of: reader) { late.append(waiter) }
        }
      }
      return late
    }
  }

  private struct Most {
    var perReader: Int
    var scans: Int
  }

  private let state: Mutex<State>
  private let most: Most
  private let mostWaiting: Int
  private let mostWaitingPerReader: Int
  private let effects: Effects

  init(
    _ name: String = "server reads",
    threads: Int,
    waiting: Int,
    waitingPerReader: Int,
    effects: Effects
  ) {
    state = Mutex(State(idle: (0..<threads).map { effects.waitingLane("\(name) \($0)") }))
    most = Most(perReader: max(1, threads / 2), scans: max(1, threads - 1))
    mostWaiting = waiting
    mostWaitingPerReader = waitingPerReader
    self.effects = effects
  }

  /// The number of queued reads.
  var waitingCount: Int { state.withLock { $0.count } }

  /// Runs the body on one of the threads in the reader's turn; a read whose task is cancelled
  /// before, or whose time is over, is removed from the queue.
  func run<Result: Sendable>(
    _ kind: Kind,
    for reader: String,
    _ control: ReadControl? = nil,
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    let lane = try await take(kind, reader, control)
    defer { release(lane, kind, reader) }
    return try await lane.run(body)
  }

  private func take(_ kind: Kind, _ reader: String, _ control: ReadControl?) async throws -> Lane {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let waiter = Waiter(id: id, kind: kind, control: control, resume: continuation)
        if let outcome = begin(waiter, reader) {
          continuation.resume(with: outcome)
        } else if control != nil {
          watchTime()
        }
      }
    } onCancel: {
      leave(id, reader)
    }
  }

  /// Assigns a thread to the read, refuses it, or queues it; nil if it was queued.
  private func begin(_ waiter: Waiter, _ reader: String) -> Result<Lane, any Error>? {
    state.withLock { state in
      // Under the lock: a later cancellation finds the read in the queue.
      guard !Task.isCancelled else { return .failure(ReadOver()) }
      if state.mayStart(waiter.kind, of: reader, most), let lane = state.idle.popLast() {
        state.start(waiter.kind, of: reader)
        return .success(lane)
      }
      guard state.count < mostWaiting,
        state.waiting[reader, default: []].count < mostWaitingPerReader
      else {
        return .failure(
          ErrorDictionary(.tryAgainLater, "too many reads are waiting", retryAfter: 1)
        )
      }
      state.enqueue(waiter, of: reader)
      return nil
    }
  }

  private func leave(_ id: UInt64, _ reader: String) {
    let waiter = state.withLock { state -> Waiter? in
      let index = state.waiting[reader]?.firstIndex { $0.id == id }
      return index.flatMap { state.remove(at: $0, of: reader) }
    }
    waiter?.resume.resume(throwing: ReadOver())
  }

  private func release(_ lane: Lane, _ kind: Kind, _ reader: String) {
    let begun = state.withLock { state in
      state.end(kind, of: reader)
      state.idle.append(lane)
      // An end can allow more than one start: the reader's, and one more scan beside it.
      var begun: [(Waiter, Lane)] = []
      while let lane = state.idle.last, let next = state.next(most) {
        state.idle.removeLast()
        begun.append((next, lane))
      }
      return begun
    }
    for (waiter, lane) in begun { waiter.resume.resume(returning: lane) }
  }

  // MARK: Time

  /// Starts the task that ends queued reads, unless there is one: a thread may not be free before
  /// their time is over.
  private func watchTime() {
    let begins = state.withLock { state in
      defer { state.isWatched = true }
      return !state.isWatched
    }
    guard begins else { return }
    effects.tasks.spawn { [weak self, clock = effects.clock] in
      while let pause = self?.endLateReads() {
        let seconds = min(max(pause, ReadQueue.shortestPause), ReadQueue.longestPause)
        do { try await clock.sleep(seconds: seconds) } catch { return }
      }
    }
  }

  /// Ends the queued reads whose time is over; returns the seconds until the next one's is, or nil
  /// if none is queued.
  private func endLateReads() -> Double? {
    let (late, pause) = state.withLock { state in
      let late = state.removeLate()
      let pause = state.waiting.values.joined().compactMap { $0.control?.secondsLeft }.min()
      if pause == nil { state.isWatched = false }
      return (late, pause)
    }
    for waiter in late { waiter.resume.resume(throwing: ReadOver()) }
    return pause
  }

  /// Seconds, so that reads which end one after the other share one look.
  private static let shortestPause = 0.1
  /// Seconds: a read that is queued later may have less time left.
  private static let longestPause = 1.0
}
