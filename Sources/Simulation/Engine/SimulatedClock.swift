import Effects
import Foundation
import Synchronization

/// The virtual time of a world: it moves only when no job can run, or when a step says so.
package final class SimulatedClock: Sendable {
  private struct Sleeper {
    var number: Int
    var deadline: Double
    var continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var uptime = 1000.0
    var sleepers: [Sleeper] = []
    var cancelled: Set<Int> = []
    var nextNumber = 0
    var isOver = false
  }

  /// When every world begins: 1 January 2026.
  private static let start = Date(timeIntervalSince1970: 1_767_225_600)

  private let state = Mutex(State())

  package init() {}

  /// Seconds on the clock that never jumps.
  package var uptime: Double { state.withLock { $0.uptime } }

  /// Seconds since the world began.
  package var elapsed: Double { uptime - 1000 }

  var now: Date { Self.start.addingTimeInterval(uptime) }

  package func sleep(seconds: Double) async throws {
    let number = state.withLock { state in
      state.nextNumber += 1
      return state.nextNumber
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isDone = state.withLock { state in
          guard state.cancelled.remove(number) == nil, seconds > 0, !state.isOver else {
            return true
          }
          state.sleepers.append(
            Sleeper(number: number, deadline: state.uptime + seconds, continuation: continuation)
          )
          return false
        }
        if isDone { continuation.resume() }
      }
    } onCancel: {
      let sleeper = state.withLock { state -> Sleeper? in
        guard let index = state.sleepers.firstIndex(where: { $0.number == number }) else {
          state.cancelled.insert(number)
          return nil
        }
        return state.sleepers.remove(at: index)
      }
      sleeper?.continuation.resume()
    }
    state.withLock { _ = $0.cancelled.remove(number) }
    try Task.checkCancellation()
    if state.withLock({ $0.isOver }) { throw CancellationError() }
  }

  /// Moves to the earliest time that a task sleeps until, and wakes the tasks of that time.
  ///
  /// Returns false where no task sleeps.
  func advanceToNextDeadline() -> Bool {
    let next = state.withLock { $0.sleepers.map(\.deadline).min() }
    guard let next else { return false }
    move(to: next)
    return true
  }

  /// Lets a span pass in which no process ran, as when all machines were asleep.
  package func leap(seconds: Double) { move(to: uptime + seconds) }

  /// Ends every sleep, now and from now on: the run is over.
  func end() {
    let woken = state.withLock { state in
      state.isOver = true
      defer { state.sleepers = [] }
      return state.sleepers
    }
    for sleeper in woken { sleeper.continuation.resume() }
  }

  private func move(to time: Double) {
    let woken = state.withLock { state -> [Sleeper] in
      state.uptime = max(state.uptime, time)
      let limit = state.uptime
      let due = state.sleepers.filter { $0.deadline <= limit }
      state.sleepers.removeAll { $0.deadline <= limit }
      return due.sorted { ($0.deadline, $0.number) < ($1.deadline, $1.number) }
    }
    for sleeper in woken { sleeper.continuation.resume() }
  }
}

/// The clock as one process sees it: its wall clock may be wrong.
struct ProcessClock: EffectClock {
  let process: SimulatedProcess
  let clock: SimulatedClock

  var now: Date { clock.now.addingTimeInterval(process.clockOffset) }
  var uptime: Double { clock.uptime }

  func sleep(seconds: Double) async throws { try await clock.sleep(seconds: seconds) }
}
