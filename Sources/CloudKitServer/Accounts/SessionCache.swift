import Synchronization

/// Sessions, API tokens and containers met lately, so that a request need not ask the storage for them.
final class SessionCache: Sendable {
  private struct Met {
    var session: StoredSession
    /// Milliseconds since 1970.
    var checked: Int64
  }

  private struct MetToken {
    var token: StoredAPIToken
    var checked: Int64
  }

  private struct State {
    var sessions: [String: Met] = [:]
    var apiTokens: [String: MetToken] = [:]
    /// The grants of sessions; of a page's session, nil.
    var grants: [String: String?] = [:]
    var containers: Set<String> = []
    /// Grows each time sessions are forgotten.
    var generation = 0
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

  /// To be taken before the storage is read, and given to `note` with what was found.
  var generation: Int { state.withLock { $0.generation } }

  /// Keeps a session that was read in a generation; not one of an earlier generation, which may have
  /// ended after it was read.
  func note(_ session: StoredSession, readIn generation: Int, now: Int64) {
    state.withLock { state in
      guard state.generation == generation else { return }
      if state.sessions.count >= Self.limit { state.sessions.removeAll() }
      let checked = state.sessions[session.digest].map { met in
        now - met.checked < Self.freshness ? met.checked : now
      }
      state.sessions[session.digest] = Met(session: session, checked: checked ?? now)
    }
  }

  /// The grant that a session belongs to: it never changes, and is read once.
  func grant(of digest: String, _ read: () throws -> String?) rethrows -> String? {
    if let known = state.withLock({ $0.grants[digest] }) { return known }
    let grant = try read()
    state.withLock { state in
      if state.grants.count >= Self.limit { state.grants.removeAll() }
      state.grants[digest] = .some(grant)
    }
    return grant
  }

  /// The token as it was a moment ago, or else as it is read.
  func apiToken(
    _ text: String,
    now: Int64,
    _ read: () throws -> StoredAPIToken?
  ) rethrows -> StoredAPIToken? {
    if let met = state.withLock({ $0.apiTokens[text] }), now - met.checked < Self.freshness {
      return met.token
    }
    let generation = generation
    guard let token = try read() else { return nil }
    state.withLock { state in
      guard state.generation == generation else { return }
      if state.apiTokens.count >= Self.limit { state.apiTokens.removeAll() }
      state.apiTokens[text] = MetToken(token: token, checked: now)
    }
    return token
  }

  /// Forgets who is signed in and by what; the storage is asked again.
  func forgetSessions() {
    state.withLock { state in
      state.generation += 1
      state.sessions.removeAll()
      state.grants.removeAll()
      state.apiTokens.removeAll()
    }
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
