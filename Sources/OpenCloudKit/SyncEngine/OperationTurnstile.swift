import Synchronization

/// A first-in, first-out lock for operations.
final class OperationTurnstile: Sendable {
  private struct State {
    var isTaken = false
    var nextNumber = 0
    var waiting: [(number: Int, continuation: CheckedContinuation<Bool, Never>)] = []
    /// The operations that were cancelled before they began to wait.
    var cancelled: Set<Int> = []
  }

  private let state = Mutex(State())

  /// Waits for the lock; returns false if the task was cancelled first.
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

  /// Releases the lock to the operation that waits longest.
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
