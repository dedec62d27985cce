import CloudKitWebServices
import Effects
import Synchronization

/// Runs reads that may examine many records on a few threads besides the pool, so that slow reads
/// never keep the pool from other requests.
///
/// A reader is a person, or a site of callers who are not signed in. One reader has no more than
/// half of the threads and a bounded number of places in the queue. Threads that become free go to the
/// readers in turn, so a reader with many waiting reads delays another reader by one read at most for
/// each thread.
final class ReadQueue: Sendable {
  private struct Waiter {
    var id: UInt64
    var resume: CheckedContinuation<Lane, any Error>
  }

  private struct State {
    var idle: [Lane]
    var running: [String: Int] = [:]
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

    /// Removes the next read that may start; its reader is then last in turn.
    mutating func next(mostPerReader: Int) -> (reader: String, waiter: Waiter)? {
      let index = turns.firstIndex { running[$0, default: 0] < mostPerReader }
      guard let index else { return nil }
      let reader = turns.remove(at: index)
      turns.append(reader)
      guard let waiter = remove(at: 0, of: reader) else { return nil }
      running[reader, default: 0] += 1
      return (reader, waiter)
    }
  }

  private let state: Mutex<State>
  private let mostPerReader: Int
  private let mostWaiting: Int
  private let mostWaitingPerReader: Int

  init(threads: Int, waiting: Int, waitingPerReader: Int, effects: Effects) {
    state = Mutex(
      State(idle: (0..<threads).map { effects.waitingLane("server reads \($0)") })
    )
    mostPerReader = max(1, threads / 2)
    mostWaiting = waiting
    mostWaitingPerReader = waitingPerReader
  }

  /// The number of queued reads.
  var waitingCount: Int { state.withLock { $0.count } }

  /// Runs the body on one of the threads in the reader's turn; a task that is cancelled before is
  /// removed from the queue.
  func run<Result: Sendable>(
    for reader: String,
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    let lane = try await take(reader)
    defer { release(lane, reader) }
    return try await lane.run(body)
  }

  private func take(_ reader: String) async throws -> Lane {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let waiter = Waiter(id: id, resume: continuation)
        if let outcome = begin(waiter, reader) { continuation.resume(with: outcome) }
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
      if state.running[reader, default: 0] < mostPerReader, let lane = state.idle.popLast() {
        state.running[reader, default: 0] += 1
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

  private func release(_ lane: Lane, _ reader: String) {
    let next: Waiter? = state.withLock { state in
      let left = state.running[reader, default: 1] - 1
      state.running[reader] = left > 0 ? left : nil
      guard let next = state.next(mostPerReader: mostPerReader) else {
        state.idle.append(lane)
        return nil
      }
      return next.waiter
    }
    next?.resume.resume(returning: lane)
  }
}
