import Synchronization

/// Which of this process's own notes its listeners have been given.
///
/// A note comes up twice: after the commit that it belongs to, and with the event that the commit
/// wrote. Usually the first one delivers it. Where the outcome of a commit was not known, only the
/// event comes.
final class AnnouncementLedger: Sendable {
  private struct State {
    var lastNumber: Int64 = 0
    /// Delivered, and to come up once more.
    var claimed: Set<Int64> = []
  }

  private let state = Mutex(State())

  /// The number of a note whose event is about to be written.
  func nextNumber() -> Int64 {
    state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
  }

  /// Whether the note is to be delivered now; the second call for a number says no.
  func claim(_ number: Int64) -> Bool {
    state.withLock { state in
      if state.claimed.remove(number) != nil { return false }
      state.claimed.insert(number)
      return true
    }
  }

  /// Takes a claim back whose delivery failed.
  func release(_ number: Int64) { state.withLock { _ = $0.claimed.remove(number) } }
}
