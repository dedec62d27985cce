import Effects
import Foundation
import Synchronization

/// A clock that a test advances; tasks that sleep until then wake.
final class ManualClock: EffectClock {
  private struct State {
    var uptime = 1000.0
    var sleepers: [Int: (deadline: Double, continuation: CheckedContinuation<Void, Never>)] = [:]
    var cancelled: Set<Int> = []
    var nextNumber = 0
  }

  private let state = Mutex(State())

  var now: Date { Date(timeIntervalSinceReferenceDate: uptime) }
  var uptime: Double { state.withLock { $0.uptime } }

  func sleep(seconds: Double) async throws {
    let number = state.withLock { state in
      state.nextNumber += 1
      return state.nextNumber
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          let deadline = state.uptime + seconds
          guard state.cancelled.remove(number) == nil, deadline > state.uptime else { return true }
          state.sleepers[number] = (deadline, continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      let sleeper = state.withLock { state in
        let sleeper = state.sleepers.removeValue(forKey: number)
        if sleeper == nil { state.cancelled.insert(number) }
        return sleeper?.continuation
      }
      sleeper?.resume()
    }
    try Task.checkCancellation()
  }

  func advance(seconds: Double) {
    let woken = state.withLock { state in
      state.uptime += seconds
      let due = state.sleepers.filter { $0.value.deadline <= state.uptime }
      for number in due.keys { state.sleepers[number] = nil }
      return due.values.map(\.continuation)
    }
    for continuation in woken { continuation.resume() }
  }
}
