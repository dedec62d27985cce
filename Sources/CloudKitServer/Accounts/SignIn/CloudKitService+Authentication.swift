import CloudKitWebServices
import Crypto
import Foundation

extension CloudKitService {
  /// Verifies the API token, then the user.
  func authenticate(
    _ request: WebServiceRequest,
    _ target: RequestTarget,
    _ path: WebServicePath
  ) async throws -> RequestContext {
    let visit = try sharing.visit(target, path)
    let sent = target.query[WebServiceName.apiToken] ?? ""
    guard let text = sent.isEmpty ? visit?.apiToken : sent else {
      throw ErrorDictionary(.authenticationFailed, "no auth method found")
    }
    let known = try sessions.apiToken(text, now: now) { try apiToken(text) }
    guard let apiToken = known, apiToken.environment == path.environment,
      apiToken.container == nil || apiToken.container == path.container
    else { throw ErrorDictionary(.authenticationFailed, "unknown API token") }
    let origin = request.headers["origin"]
    if let origin, !apiToken.allowedOrigins.isEmpty, !allows(origin, apiToken) {
      throw ErrorDictionary(.authenticationFailed, "the API token is not for pages of \(origin)")
    }
    guard NameRules.isContainerName(path.container, limits) else {
      throw ErrorDictionary(.badRequest, "invalid container")
    }
    let principal =
      try await target.webAuthToken.asyncMap {
        try await self.principal(token: $0, container: path.container)
      } ?? nil
    // A user token is for one container; without a user any container name could be invented.
    if principal != nil { try await openContainer(path.container) }
    return RequestContext(
      container: path.container,
      environment: path.environment,
      scope: path.database ?? .public,
      principal: principal,
      visit: principal == nil ? visit : nil,
      apiToken: text,
      isExtended: request.headers[WebServiceName.capabilities] == WebServiceName.capabilitiesValue,
      clientID: target.query["clientId"].flatMap(limits.deviceName),
      wantsSyncToken: target.query[WebServiceName.currentSyncToken]?.lowercased() == "true",
      signInURL: principal == nil
        ? try signInURL(
          SignInRequest(apiToken: text, container: path.container, origin: origin)
        ) : ""
    )
  }

  /// Registers a container when a user accesses it for the first time.
  private func openContainer(_ container: String) async throws {
    guard !sessions.knows(container: container) else { return }
    try await write {
      var batch = WriteBatch()
      batch.container = container
      return (batch, ())
    }
    sessions.note(container: container)
  }

  /// Clears cached credentials and ends the polls and streams bound to ended ones, after this
  /// process has ended some.
  func credentialsEnded() {
    sessions.forgetSessions()
    devices.endUnboundListeners()
  }

  static func digest(_ token: String) -> String {
    Data(SHA256.hash(data: Data(token.utf8))).hexadecimal
  }

  /// The user of a token, or nil if it is unknown, for another container, or expired.
  private func principal(token: String, container: String) async throws -> Principal? {
    let digest = Self.digest(token)
    let generation = sessions.generation
    var session = sessions.session(digest: digest, now: now)
    if session == nil {
      session = try storage.read { try $0.session(digest: digest) }
    }
    guard let session, session.container == container, session.expires > now else { return nil }
    guard let session = try await renewed(session) else {
      sessions.forgetSessions()
      return nil
    }
    sessions.note(session, readIn: generation, now: now)
    let account = session.account
    return Principal(
      account: account,
      userRecordName: session.userRecordName,
      session: digest,
      grant: try sessions.grant(of: digest) {
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

  /// Moves a session's end on, up to its greatest age; nil where it was ended meanwhile.
  ///
  /// The age is stored from the first renewal on; before it, the expiry shows when the session
  /// began.
  private func renew(_ session: StoredSession, _ lifetime: Double) async throws -> StoredSession? {
    let age = session.isKept ? limits.keptSessionAge : limits.sessionAge
    let key = DirectoryEntry.Key(.sessionEnd, session.digest)
    let time = now
    return try await write { [storage] in
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

extension Optional {
  func asyncMap<Result>(
    _ transform: (Wrapped) async throws -> Result
  ) async rethrows -> Result? {
    guard let self else { return nil }
    return try await transform(self)
  }
}
