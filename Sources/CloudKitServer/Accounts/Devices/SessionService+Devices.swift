import CloudKitWebServices
import Effects
import Foundation

/// A signed-in device as an administrator sees it.
package struct DeviceDescription: Codable, Hashable, Sendable {
  package var id: String
  package var device: String
  package var container: String
  /// Milliseconds since 1970.
  package var created: Int64
  package var used: Int64
}

/// Devices that stay signed in: they have a refresh token, which can be revoked.
extension SessionService {
  /// Signs a device in for an authenticated account.
  func startGrant(
    account: StoredAccount,
    container: String,
    device: String
  ) async throws -> DeviceCredentials {
    let (token, session) = try await make(
      account: account.id,
      container: container,
      isKept: false
    )
    let id = effects.randomness.bytes(16).hexadecimal
    let secret = effects.randomness.bytes(32).base64URL
    let grant = RefreshGrant(
      account: account.id,
      container: container,
      device: PersonName.device(device, limit: limits.nameLength),
      current: TokenDigest.of(secret),
      previous: nil,
      sessions: [session.digest],
      created: now,
      used: now
    )
    let entry = try self.entry(id, grant, revision: 1)
    let hasEnded = try await writer.write { [storage] in
      try storage.read { snapshot in
        var batch = WriteBatch()
        try batch.expectOpen(account, snapshot)
        batch.sessions = [session]
        batch.savedEntries = [entry]
        try self.endSurplusGrants(of: account.id, snapshot, in: &batch)
        return (batch, !batch.removedEntries.isEmpty)
      }
    }
    if hasEnded { credentialsEnded(of: account.id) }
    return DeviceCredentials(
      webAuthToken: token,
      expires: session.expires,
      refreshToken: "\(id).\(secret)",
      userRecordName: session.userRecordName
    )
  }

  /// Ends the grants of an account that were unused for longest, so that there is room for one more.
  private func endSurplusGrants(
    of account: String,
    _ snapshot: any StorageSnapshot,
    in batch: inout WriteBatch
  ) throws {
    let known = try snapshot.entries(DirectoryRange(.refreshToken, owner: account, limit: .max))
    let surplus = known.count - (limits.grantsPerAccount - 1)
    guard surplus > 0 else { return }
    let grants = try known.map { entry in
      (key: entry.key, grant: try WireCoding.decode(RefreshGrant.self, from: entry.body))
    }
    let ended = grants.sorted { ($0.grant.used, $0.key.name) < ($1.grant.used, $1.key.name) }
      .prefix(surplus)
    batch.removedEntries += ended.map(\.key)
    batch.endedSessions += ended.flatMap(\.grant.sessions)
    let names = Set(ended.map(\.key.name))
    try devices.endDevices(of: account, snapshot, in: &batch) {
      $0.grant.map(names.contains) ?? false
    }
  }

  private func entry(_ id: String, _ grant: RefreshGrant, revision: Int64) throws -> DirectoryEntry
  {
    DirectoryEntry(
      RefreshGrant.key(id),
      owner: grant.account,
      revision: revision,
      expires: now + Int64(limits.refreshTokenLifetime * 1000),
      body: try WireCoding.encode(grant)
    )
  }

  /// Exchanges a refresh token for a user token and the next refresh token.
  package func refresh(
    _ refreshToken: String,
    from sender: SenderAddress? = nil
  ) async throws -> DeviceCredentials {
    let refused = ErrorDictionary(
      .authenticationFailed,
      "the refresh token has expired or was revoked"
    )
    let halves = refreshToken.split(ascii: ".", maxSplits: 1).map(String.init)
    guard halves.count == 2 else { throw refused }
    let (id, digest) = (halves[0], TokenDigest.of(halves[1]))
    let secret = effects.randomness.bytes(32).base64URL
    let known = try storage.read { try $0.entry(RefreshGrant.key(id)) }
    guard let known, (known.expires ?? 0) > now else { throw refused }
    let grant = try WireCoding.decode(RefreshGrant.self, from: known.body)
    guard grant.judge(digest) == .rotate else {
      try await revokeDevice(id)
      auditLog.record(
        "device.copied-token",
        by: "",
        about: try storage.userName(of: grant.account),
        from: sender,
        device: grant.device
      )
      throw refused
    }
    guard try !storage.read({ try $0.state(of: grant.account).0.isDisabled }) else { throw refused }
    let (token, session) = try await make(
      account: grant.account,
      container: grant.container,
      isKept: false
    )
    let next = grant.rotated(
      from: digest,
      to: TokenDigest.of(secret),
      session: session.digest,
      now: now
    )
    let saved = try entry(id, next, revision: known.revision + 1)
    let isDone = try await writer.write { [storage] () -> (WriteBatch?, Bool) in
      // Two concurrent uses: the second one must retry with the token that the first one received.
      let found = try storage.read { try $0.entry(RefreshGrant.key(id)) }
      guard found?.revision == known.revision else { return (nil, false) }
      var batch = WriteBatch()
      batch.expectedEntries[saved.key] = .some(known.revision)
      batch.savedEntries = [saved]
      batch.sessions = [session]
      batch.supersededSessions = grant.sessions.filter { !next.sessions.contains($0) }
      return (batch, true)
    }
    guard isDone else {
      throw ErrorDictionary(.tryAgainLater, "the refresh token is in use", retryAfter: 1)
    }
    return DeviceCredentials(
      webAuthToken: token,
      expires: session.expires,
      refreshToken: "\(id).\(secret)",
      userRecordName: session.userRecordName
    )
  }

  package func devices(of userName: String) throws -> [DeviceDescription] {
    try devices(ofAccount: storage.account(named: userName).id)
  }

  func devices(ofAccount account: String) throws -> [DeviceDescription] {
    try storage.read {
      try $0.entries(DirectoryRange(.refreshToken, owner: account, limit: .max))
    }.map { entry in
      let grant = try WireCoding.decode(RefreshGrant.self, from: entry.body)
      return DeviceDescription(
        id: entry.key.name,
        device: grant.device,
        container: grant.container,
        created: grant.created,
        used: grant.used
      )
    }
  }

  /// Signs a device out: its refresh token and the user tokens that it fetched become invalid.
  @discardableResult
  package func revokeDevice(_ id: String) async throws -> RefreshGrant {
    let ended = try await writer.write { [storage] in
      guard let entry = try storage.read({ try $0.entry(RefreshGrant.key(id)) }) else {
        throw AdministrationError(description: "There is no device with the ID \(id).")
      }
      let grant = try WireCoding.decode(RefreshGrant.self, from: entry.body)
      return try storage.read { snapshot in
        var batch = WriteBatch()
        batch.removedEntries = [entry.key]
        batch.endedSessions = grant.sessions
        try self.devices.endDevices(of: grant.account, snapshot, in: &batch) { $0.grant == id }
        return (batch, grant)
      }
    }
    credentialsEnded(of: ended.account)
    return ended
  }

  /// Ends every session and device of an account.
  package func signOutEverywhere(_ userName: String) async throws {
    let account = try storage.account(named: userName)
    try await writer.write { [storage] in
      try storage.read { snapshot in
        var batch = WriteBatch()
        try self.endAll(of: account.id, snapshot, in: &batch)
        return (batch, ())
      }
    }
    credentialsEnded(of: account.id)
  }
}
