import Synchronization

/// The commit notifications of this process that its listeners have received.
///
/// A notification arrives twice, after its commit and with the event that the commit wrote, and is
/// delivered once: usually when it first arrives. If the outcome of a commit was unknown, only the
/// event arrives.
final class AnnouncementLedger: Sendable {
  private struct State {
    var lastNumber: Int64 = 0
    /// The numbers of delivered notifications that are expected to arrive again.
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
