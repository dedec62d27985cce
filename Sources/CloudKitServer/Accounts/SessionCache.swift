import Synchronization

/// Sessions and containers met lately, so that a request need not ask the storage for them.
final class SessionCache: Sendable {
  private struct State {
    var sessions: [String: StoredSession] = [:]
    var containers: Set<String> = []
  }

  /// Bounds the memory; forgetting costs one look-up.
  private static let limit = 10_000

  private let state = Mutex(State())

  subscript(digest: String) -> StoredSession? {
    get { state.withLock { $0.sessions[digest] } }
    set {
      state.withLock { state in
        if state.sessions.count >= Self.limit { state.sessions.removeAll() }
        state.sessions[digest] = newValue
      }
    }
  }

  /// Another server may have ended any of them.
  func forgetSessions() { state.withLock { $0.sessions.removeAll() } }

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
