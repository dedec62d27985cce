import Synchronization

/// Sessions and containers met lately, so that a request need not ask the storage for them.
final class SessionCache: Sendable {
  private struct Met {
    var session: StoredSession
    /// Milliseconds since 1970.
    var checked: Int64
  }

  private struct State {
    var sessions: [String: Met] = [:]
    var containers: Set<String> = []
  }

  /// Bounds the memory; forgetting costs one look-up.
  private static let limit = 10_000
  /// Milliseconds after which the storage is asked again: another process may have ended a session.
  private static let freshness: Int64 = 5000

  private let state = Mutex(State())

  func session(digest: String, now: Int64) -> StoredSession? {
    state.withLock { state in
      guard let met = state.sessions[digest], now - met.checked < Self.freshness else { return nil }
      return met.session
    }
  }

  func note(_ session: StoredSession, now: Int64) {
    state.withLock { state in
      if state.sessions.count >= Self.limit { state.sessions.removeAll() }
      let checked = state.sessions[session.digest].map { met in
        now - met.checked < Self.freshness ? met.checked : now
      }
      state.sessions[session.digest] = Met(session: session, checked: checked ?? now)
    }
  }

  /// Forgets who is signed in; the storage is asked again.
  func forgetSessions() {
    state.withLock { $0.sessions.removeAll() }
  }

  func knows(container: String) -> Bool {
    state.withLock { $0.containers.contains(container) }
  }

  func note(container: String) {
    state.withLock { state in
      if state.containers.count >= Self.limit { state.containers.removeAll() }
      state.containers.insert(container)
    }
  }
}
