import Synchronization

/// Announces the commits of a store in their order, regardless of the threads that made them.
///
/// A commit takes its turn while the store's writer lock is held, and is announced while no lock is
/// held. A thread out of turn does not block: the thread before it makes the announcement.
/// Each announcement ends before the next begins.
final class CommitOrder: Sendable {
  /// The place of one commit among the others.
  ///
  /// A turn that is released without an announcement is over.
  final class Turn: Sendable {
    private let order: CommitOrder
    private let number: Int
    private let isOver = Atomic(false)

    fileprivate init(_ order: CommitOrder, _ number: Int) {
      self.order = order
      self.number = number
    }

    /// Announces the commit now, or has it announced by the thread whose turn is before.
    func announce(_ body: @escaping @Sendable () -> Void) {
      guard !isOver.exchange(true, ordering: .relaxed) else { return }
      order.finish(number, body)
    }

    deinit {
      if !isOver.load(ordering: .relaxed) { order.finish(number, {}) }
    }
  }

  private struct State {
    /// The number of the next commit.
    var next = 0
    /// The number of the commit that is announced next.
    var turn = 0
    var waiting: [Int: @Sendable () -> Void] = [:]
    /// Whether a thread is announcing; it continues with the waiting announcements.
    var isAnnouncing = false
  }

  private let state = Mutex(State())

  /// The turn of a commit; called while the writer is held.
  func take() -> Turn {
    Turn(
      self,
      state.withLock { state in
        defer { state.next += 1 }
        return state.next
      }
    )
  }

  private func finish(_ number: Int, _ body: @escaping @Sendable () -> Void) {
    let isFirst = state.withLock { state in
      state.waiting[number] = body
      defer { state.isAnnouncing = true }
      return !state.isAnnouncing
    }
    guard isFirst else { return }
    while let announce = nextAnnouncement() { announce() }
  }

  private func nextAnnouncement() -> (@Sendable () -> Void)? {
    state.withLock { state in
      guard let body = state.waiting.removeValue(forKey: state.turn) else {
        state.isAnnouncing = false
        return nil
      }
      state.turn += 1
      return body
    }
  }
}
