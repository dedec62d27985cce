import Synchronization

/// Coalesces concurrent calls with the same key: the first caller (the leader) runs the body, the
/// others (followers) wait for its outcome.
final class SharedCalls<Key: Hashable & Sendable, Output: Sendable>: Sendable {
  private enum Word: Sendable {
    case outcome(Result<Output, CKError>)
    /// The waiting task was cancelled.
    case cancelled
    /// The call has already ended: try again.
    case again
  }

  private struct State {
    var nextNumber = 0
    var waiting: [Key: [Int: CheckedContinuation<Word, Never>]] = [:]
  }

  private let state = Mutex(State())

  /// The number of followers that wait for a leader's outcome.
  var waitingCount: Int { state.withLock { $0.waiting.values.reduce(0) { $0 + $1.count } } }

  /// Runs the body for a key, or waits for the caller that is running it.
  func run(
    _ key: Key,
    _ body: () async throws(CKError) -> Output
  ) async throws(CKError) -> Output {
    while true {
      let isFirst = state.withLock { state in
        guard state.waiting[key] == nil else { return false }
        state.waiting[key] = [:]
        return true
      }
      if isFirst { return try await lead(key, body) }
      switch await follow(key) {
      case .again: continue
      case .cancelled: throw CKError(transport: CancellationError())
      // A cancelled leader does not cancel its followers.
      case .outcome(.failure(let error)) where error.code == .operationCancelled: continue
      case .outcome(let outcome): return try outcome.get()
      }
    }
  }

  private func lead(
    _ key: Key,
    _ body: () async throws(CKError) -> Output
  ) async throws(CKError) -> Output {
    let outcome: Result<Output, CKError>
    do {
      outcome = .success(try await body())
    } catch {
      outcome = .failure(error)
    }
    let waiting = state.withLock { $0.waiting.removeValue(forKey: key) ?? [:] }
    for continuation in waiting.values { continuation.resume(returning: .outcome(outcome)) }
    return try outcome.get()
  }

  private func follow(_ key: Key) async -> Word {
    let number = state.withLock { state in
      state.nextNumber += 1
      return state.nextNumber
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let word: Word? = state.withLock { state in
          // Checked under the lock: the cancellation handler runs either before or after this
          // section.
          guard !Task.isCancelled else { return .cancelled }
          guard state.waiting[key] != nil else { return .again }
          state.waiting[key]?[number] = continuation
          return nil
        }
        if let word { continuation.resume(returning: word) }
      }
    } onCancel: {
      let continuation = state.withLock { $0.waiting[key]?.removeValue(forKey: number) }
      continuation?.resume(returning: .cancelled)
    }
  }
}
