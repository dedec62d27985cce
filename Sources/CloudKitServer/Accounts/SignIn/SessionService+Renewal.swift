import CloudKitWebServices
import Foundation

/// Authentication by a user token.
extension SessionService {
  /// Clears an account's cached credentials and ends its polls and streams that are bound to ended
  /// ones, after this process has ended some.
  ///
  /// Only this account's entries are removed: the cost of a sign-out must not grow with the number
  /// of all devices.
  func credentialsEnded(of account: String) {
    cache.forgetSessions(of: account)
    devices.endUnboundListeners(of: account)
  }

  /// Forgets the sessions of all accounts and ends unbound listeners, after an account was removed.
  func credentialsEnded() {
    cache.forgetSessions()
    devices.endUnboundListeners()
  }

  /// The user of a token, or nil if it is unknown, for another container, or expired.
  func principal(token: String, container: String) async throws -> Principal? {
    let digest = TokenDigest.of(token)
    let generation = cache.generation
    var session = cache.session(digest: digest, now: now)
    if session == nil {
      session = try storage.read { try $0.session(digest: digest) }
    }
    guard let session, session.container == container, session.expires > now else { return nil }
    guard let session = try await renewed(session) else {
      cache.forgetSessions()
      return nil
    }
    cache.note(session, readIn: generation, now: now)
    let account = session.account
    return Principal(
      account: account,
      userRecordName: session.userRecordName,
      session: digest,
      grant: try cache.grant(of: digest) {
        try storage.read { try grant(ofSession: digest, account: account, $0) }
      }
    )
  }

  /// A session that is used now: use renews it, with a write only once in half its life.
  ///
  /// - Returns: Nil where it was ended meanwhile.
  func renewed(_ session: StoredSession) async throws -> StoredSession? {
    let lifetime = session.isKept ? limits.keptSessionLifetime : limits.sessionLifetime
    guard Double(session.expires - now) < lifetime * 500 else { return session }
    return try await renew(session, lifetime)
  }

  /// Extends a session up to its greatest age; nil if it was ended in between.
  ///
  /// The age is stored from the first renewal on; before it, the expiry shows when the session
  /// began.
  private func renew(_ session: StoredSession, _ lifetime: Double) async throws -> StoredSession? {
    let age = session.isKept ? limits.keptSessionAge : limits.sessionAge
    let key = DirectoryEntry.Key(.sessionEnd, session.digest)
    let time = now
    return try await writer.write { [storage] in
      try storage.read { snapshot -> (WriteBatch?, StoredSession?) in
        guard var found = try snapshot.session(digest: session.digest), found.expires > time else {
          return (nil, nil)
        }
        let known = try snapshot.entry(key)
        let end = known?.expires ?? found.expires + Int64((age - lifetime) * 1000)
        let next = min(time + Int64(lifetime * 1000), end)
        guard next > found.expires else { return (nil, found) }
        found.expires = next
        var batch = WriteBatch()
        if known == nil {
          batch.savedEntries = [DirectoryEntry(key, owner: found.account, expires: end)]
        }
        batch.renewedSessions = [
          WriteBatch.SessionRenewal(digest: found.digest, expires: found.expires)
        ]
        return (batch, found)
      }
    }
  }
}
