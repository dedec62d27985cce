import Synchronization

/// The commit notifications of this process that its listeners have received.
///
/// A notification is delivered twice: after its commit, and with the event that the commit wrote.
/// Usually the first delivers it. If the outcome of a commit was unknown, only the event does.
final class AnnouncementLedger: Sendable {
  private struct State {
    var lastNumber: Int64 = 0
    /// Delivered once, with the second delivery still expected.
    var claimed: Set<Int64> = []
  }

  private let state = Mutex(State())

  /// The number of a notification whose event is about to be written.
  func nextNumber() -> Int64 {
    state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
  }

  /// Whether to deliver the notification now; returns false for the second call with a number.
  func claim(_ number: Int64) -> Bool {
    state.withLock { state in
      if state.claimed.remove(number) != nil { return false }
      state.claimed.insert(number)
      return true
    }
  }

  /// Releases a claim whose delivery failed.
  func release(_ number: Int64) { state.withLock { _ = $0.claimed.remove(number) } }
}
