import Synchronization

/// A cache of recently used sessions, API tokens and containers, so that a request need not read
/// them from the storage.
final class SessionCache: Sendable {
  private struct CachedSession {
    var session: StoredSession
    /// Milliseconds since 1970.
    var checked: Int64
  }

  private struct CachedToken {
    var token: StoredAPIToken
    var checked: Int64
  }

  private struct State {
    var sessions: [String: CachedSession] = [:]
    var apiTokens: [String: CachedToken] = [:]
    /// The grants of sessions; nil for a page's session.
    var grants: [String: String?] = [:]
    var containers: Set<String> = []
    /// Incremented each time sessions are removed.
    var generation = 0
  }

  /// Limits the memory; an evicted entry is read again.
  private static let limit = 10_000
  /// Milliseconds until an entry is read again: another process may have ended a session.
  private static let freshness: Int64 = 5000

  private let state = Mutex(State())

  func session(digest: String, now: Int64) -> StoredSession? {
    state.withLock { state in
      guard let cached = state.sessions[digest], now - cached.checked < Self.freshness else {
        return nil
      }
      return cached.session
    }
  }

  /// To be read before the storage is, and passed to `note` with the result.
  var generation: Int { state.withLock { $0.generation } }

  /// Caches a session that was read in a generation; not one of an earlier generation, which may
  /// have ended after it was read.
  func note(_ session: StoredSession, readIn generation: Int, now: Int64) {
    state.withLock { state in
      guard state.generation == generation else { return }
      if state.sessions.count >= Self.limit { state.sessions.removeAll() }
      let checked = state.sessions[session.digest].map { cached in
        now - cached.checked < Self.freshness ? cached.checked : now
      }
      state.sessions[session.digest] = CachedSession(session: session, checked: checked ?? now)
    }
  }

  /// The grant of a session: it never changes, and is read once.
  func grant(of digest: String, _ read: () throws -> String?) rethrows -> String? {
    if let known = state.withLock({ $0.grants[digest] }) { return known }
    let grant = try read()
    state.withLock { state in
      if state.grants.count >= Self.limit { state.grants.removeAll() }
      state.grants[digest] = .some(grant)
    }
    return grant
  }

  /// The cached token, or else the stored one.
  func apiToken(
    _ text: String,
    now: Int64,
    _ read: () throws -> StoredAPIToken?
  ) rethrows -> StoredAPIToken? {
    if let cached = state.withLock({ $0.apiTokens[text] }), now - cached.checked < Self.freshness {
      return cached.token
    }
    let generation = generation
    guard let token = try read() else { return nil }
    state.withLock { state in
      guard state.generation == generation else { return }
      if state.apiTokens.count >= Self.limit { state.apiTokens.removeAll() }
      state.apiTokens[text] = CachedToken(token: token, checked: now)
    }
    return token
  }

  /// Removes the sessions of one account, of which some have ended.
  func forgetSessions(of account: String) {
    state.withLock { state in
      state.generation += 1
      let ended = state.sessions.filter { $0.value.session.account == account }.keys
      for digest in ended {
        state.sessions[digest] = nil
        state.grants[digest] = nil
      }
    }
  }

  /// Removes all sessions, credentials and containers; they are read from the storage again.
  func forgetSessions() {
    state.withLock { state in
      state.generation += 1
      state.sessions.removeAll()
      state.grants.removeAll()
      state.apiTokens.removeAll()
      // Opening one that exists writes nothing new.
      state.containers.removeAll()
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
