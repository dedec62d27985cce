import Effects
import Synchronization

/// The state of a store's watch for commits of other processes: the version of the file that it saw last, and
/// whether it looks for another one.
final class ForeignCommits: Sendable {
  private struct State {
    /// The file's version as this process last saw it.
    var dataVersion: Int64?
    /// When a reader last had it looked for another version.
    var checkedAt = -Double.infinity
    var isWatched = false
    var watch: FileWatch?
    /// How often the file was looked at since it was written last; nil while no task looks.
    var followUp: Int?
    var hasEnded = false
  }

  /// How often a busy file is asked again before a foreign commit is noticed by readers.
  static let checkInterval = 0.05

  private let state = Mutex(State())

  /// Whether the version of the file differs from the one noted before.
  func isNew(_ version: Int64) -> Bool {
    state.withLock { state in state.dataVersion.map { $0 != version } ?? false }
  }

  /// Notes the version of the file.
  func note(_ version: Int64) { state.withLock { $0.dataVersion = version } }

  /// Whether it is time that a reader has the file looked at again; if so, the interval begins again.
  func isDue(at now: Double) -> Bool {
    state.withLock { state in
      guard now - state.checkedAt >= Self.checkInterval else { return false }
      state.checkedAt = now
      return true
    }
  }

  /// Whether the caller is the first who wants the file to be watched.
  func beginWatching() -> Bool {
    state.withLock { state in
      defer { state.isWatched = true }
      return !state.isWatched && !state.hasEnded
    }
  }

  func keep(_ watch: FileWatch?) {
    // Released outside the lock: ending a watch asks the watcher.
    let former = state.withLock { state in
      defer { state.watch = watch }
      return state.watch
    }
    _ = former
  }

  /// Whether the caller has to look again for a while; a task that does already begins again.
  func beginFollowUps() -> Bool {
    state.withLock { state in
      defer { state.followUp = 0 }
      return state.followUp == nil
    }
  }

  /// The number of the next look; nil when there were enough.
  func nextFollowUp(of count: Int) -> Int? {
    state.withLock { state in
      guard let next = state.followUp, next < count, !state.hasEnded else {
        state.followUp = nil
        return nil
      }
      state.followUp = next + 1
      return next
    }
  }

  /// The store was closed.
  func end() {
    state.withLock { $0.hasEnded = true }
    keep(nil)
  }
}
