import CloudKitWebServices
import Effects
import Synchronization

/// Where requests read that may look at many records: a few threads beside the pool, so that slow
/// reads never keep the pool from other requests.
///
/// One person has no more than half of the threads, however many requests they send: the others wait
/// in line while another person's request passes.
final class ReadQueue: Sendable {
  private struct Waiter {
    var person: String
    var resume: CheckedContinuation<Lane, any Error>
  }

  private struct State {
    var idle: [Lane]
    var running: [String: Int] = [:]
    var waiting: [Waiter] = []
  }

  private let state: Mutex<State>
  private let mostPerPerson: Int
  private let mostWaiting: Int

  init(threads: Int, waiting: Int, effects: Effects) {
    state = Mutex(
      State(idle: (0..<threads).map { effects.waitingLane("server reads \($0)") })
    )
    mostPerPerson = max(1, threads / 2)
    mostWaiting = waiting
  }

  /// Runs the body on one of the threads when the person's turn has come.
  func run<Result: Sendable>(
    for person: String,
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    let lane = try await take(person)
    defer { giveBack(lane, person) }
    return try await lane.run(body)
  }

  private func take(_ person: String) async throws -> Lane {
    try await withCheckedThrowingContinuation { continuation in
      let outcome: Swift.Result<Lane, any Error>? = state.withLock { state in
        if state.running[person, default: 0] < mostPerPerson, let lane = state.idle.popLast() {
          state.running[person, default: 0] += 1
          return .success(lane)
        }
        guard state.waiting.count < mostWaiting else {
          return .failure(
            ErrorDictionary(.tryAgainLater, "too many reads are waiting", retryAfter: 1)
          )
        }
        state.waiting.append(Waiter(person: person, resume: continuation))
        return nil
      }
      if let outcome { continuation.resume(with: outcome) }
    }
  }

  private func giveBack(_ lane: Lane, _ person: String) {
    let next: CheckedContinuation<Lane, any Error>? = state.withLock { state in
      let left = state.running[person, default: 1] - 1
      state.running[person] = left > 0 ? left : nil
      let index = state.waiting.firstIndex {
        state.running[$0.person, default: 0] < mostPerPerson
      }
      guard let index else {
        state.idle.append(lane)
        return nil
      }
      let waiter = state.waiting.remove(at: index)
      state.running[waiter.person, default: 0] += 1
      return waiter.resume
    }
    next?.resume(returning: lane)
  }
}

extension CloudKitService {
  /// Reads beside the pool, for so long and no longer than the request lives.
  func reading<Result: Sendable>(
    _ context: RequestContext,
    _ body: @escaping @Sendable (ReadControl) throws -> Result
  ) async throws -> Result {
    // Who is not signed in shares the turns of all who are not.
    let person = context.principal?.account ?? ""
    let control = ReadControl(seconds: limits.readTime, clock: effects.clock)
    do {
      return try await withTaskCancellationHandler {
        try await reads.run(for: person) {
          // A request that ended while it waited reads nothing.
          try control.check()
          return try body(control)
        }
      } onCancel: {
        control.cancel()
      }
    } catch let error as ReadOver {
      throw error.dictionary
    }
  }
}
