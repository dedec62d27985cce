import Synchronization

/// Lets one operation at a time through, in the order they came.
final class OperationTurnstile: Sendable {
  private struct State {
    var isTaken = false
    var nextNumber = 0
    var waiting: [(number: Int, continuation: CheckedContinuation<Bool, Never>)] = []
    /// Those who were cancelled before they began to wait.
    var cancelled: Set<Int> = []
  }

  private let state = Mutex(State())

  /// Waits for the turn; false where the task was cancelled first.
  func enter() async -> Bool {
    let number = state.withLock { state in
      state.nextNumber += 1
      return state.nextNumber
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: Bool? = state.withLock { state in
          if state.cancelled.remove(number) != nil { return false }
          guard state.isTaken else {
            state.isTaken = true
            return true
          }
          state.waiting.append((number, continuation))
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      let continuation = state.withLock { state in
        guard let index = state.waiting.firstIndex(where: { $0.number == number }) else {
          state.cancelled.insert(number)
          return CheckedContinuation<Bool, Never>?.none
        }
        return state.waiting.remove(at: index).continuation
      }
      continuation?.resume(returning: false)
    }
  }

  /// Lets the next one through.
  func leave() {
    let next: CheckedContinuation<Bool, Never>? = state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isTaken = false
        return nil
      }
      return state.waiting.removeFirst().continuation
    }
    next?.resume(returning: true)
  }
}
