import Effects
import Synchronization

/// Wakes one waiting task; a call without a waiting task is kept for the next wait.
final class WakeSignal: Sendable {
  private struct State {
    var isRaised = false
    var isUrgent = false
    var waiter: (ticket: Int, onlyUrgent: Bool, continuation: CheckedContinuation<Void, Never>)?
    var nextTicket = 0
    var cancelled: Set<Int> = []
  }

  private let state = Mutex(State())

  /// Wakes the waiting task; an urgent call also ends a pause after a failure.
  func raise(urgent: Bool = false) {
    let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.isRaised = true
      if urgent { state.isUrgent = true }
      return Self.take(&state)
    }
    waiter?.resume()
  }

  /// Waits for a call, or an urgent one, or for `seconds`.
  func wait(onlyUrgent: Bool = false, seconds: Double?, clock: any EffectClock) async {
    guard let seconds else { return await wait(onlyUrgent: onlyUrgent) }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.wait(onlyUrgent: onlyUrgent) }
      group.addTask { try? await clock.sleep(seconds: seconds) }
      await group.next()
      group.cancelAll()
    }
  }

  private func wait(onlyUrgent: Bool) async {
    let ticket = state.withLock { state in
      state.nextTicket += 1
      return state.nextTicket
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isDone = state.withLock { state -> Bool in
          if state.cancelled.remove(ticket) != nil { return true }
          state.waiter = (ticket, onlyUrgent, continuation)
          guard let taken = Self.take(&state) else { return false }
          _ = taken
          return true
        }
        if isDone { continuation.resume() }
      }
    } onCancel: {
      let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
        guard let waiter = state.waiter, waiter.ticket == ticket else {
          state.cancelled.insert(ticket)
          return nil
        }
        state.waiter = nil
        return waiter.continuation
      }
      waiter?.resume()
    }
    state.withLock { _ = $0.cancelled.remove(ticket) }
  }

  /// The waiting task, if its event has happened; the event is then consumed.
  private static func take(_ state: inout State) -> CheckedContinuation<Void, Never>? {
    guard let waiter = state.waiter, waiter.onlyUrgent ? state.isUrgent : state.isRaised else {
      return nil
    }
    state.isRaised = false
    state.isUrgent = false
    state.waiter = nil
    return waiter.continuation
  }
}
