import CloudKitWebServices
import Effects
import Foundation

/// The sessions of users: begun after an authentication, renewed by use, and ended with the devices
/// and URLs that were issued to them.
package final class SessionService: Sendable {
  let storage: any Storage
  let writer: StorageWriter
  let users: UserService
  let devices: DeviceService
  let auditLog: AuditLog
  let limits: ServiceLimits
  let effects: Effects
  let cache = SessionCache()

  init(
    storage: any Storage,
    writer: StorageWriter,
    users: UserService,
    devices: DeviceService,
    auditLog: AuditLog,
    limits: ServiceLimits,
    effects: Effects
  ) {
    self.storage = storage
    self.writer = writer
    self.users = users
    self.devices = devices
    self.auditLog = auditLog
    self.limits = limits
    self.effects = effects
  }

  /// Milliseconds since 1970.
  var now: Int64 { effects.now.wireMilliseconds }

  func start(
    account: StoredAccount,
    container: String,
    isKept: Bool
  ) async throws -> String {
    let (token, session) = try await make(
      account: account.id,
      container: container,
      isKept: isKept
    )
    return try await writer.write { [storage] in
      try storage.read { snapshot in
        var batch = WriteBatch()
        try batch.expectOpen(account, snapshot)
        batch.sessions = [session]
        return (batch, token)
      }
    }
  }

  /// Stores a session if its account is unchanged since it was authenticated.
  func begin(_ session: StoredSession, of account: StoredAccount) async throws {
    try await writer.write { [storage] in
      try storage.read { snapshot in
        var batch = WriteBatch()
        try batch.expectOpen(account, snapshot)
        batch.sessions = [session]
        return (batch, ())
      }
    }
  }

  /// Creates a user token and the session to store for it.
  ///
  /// Container names have no slash: sessions of the administration and of the account page have
  /// names with one, and are only created by their own functions.
  func make(
    account: String,
    container: String,
    isKept: Bool
  ) async throws -> (token: String, session: StoredSession) {
    guard NameRules.isContainerName(container, limits) else {
      throw ErrorDictionary(.badRequest, "invalid container")
    }
    let token = effects.randomness.bytes(32).base64URL
    let user = try await users.user(account: account, container: container)
    let lifetime = isKept ? limits.keptSessionLifetime : limits.sessionLifetime
    let session = StoredSession(
      digest: TokenDigest.of(token),
      container: container,
      account: account,
      userRecordName: user.recordName,
      expires: now + Int64(lifetime * 1000),
      isKept: isKept
    )
    return (token, session)
  }

  /// The grant of a session, which never changes; nil for the session of a page.
  func grant(
    ofSession digest: String,
    account: String,
    _ snapshot: any StorageSnapshot
  ) throws -> String? {
    let grants = try snapshot.entries(
      DirectoryRange(.refreshToken, owner: account, limit: .max)
    )
    return try grants.first { entry in
      try WireCoding.decode(RefreshGrant.self, from: entry.body).sessions.contains(digest)
    }?.key.name
  }

  /// Ends every session and device of an account, and their event URLs; except the session that is
  /// kept, and its device.
  func endAll(
    of account: String,
    keeping kept: StoredSession? = nil,
    _ snapshot: any StorageSnapshot,
    in batch: inout WriteBatch
  ) throws {
    let grants = try snapshot.entries(
      DirectoryRange(.refreshToken, owner: account, limit: .max)
    )
    var keptSessions: Set<String> = kept.map { [$0.digest] } ?? []
    var keptGrant: String?
    for entry in grants {
      let sessions = try WireCoding.decode(RefreshGrant.self, from: entry.body).sessions
      guard let kept, sessions.contains(kept.digest) else {
        batch.removedEntries.append(entry.key)
        continue
      }
      keptGrant = entry.key.name
      keptSessions.formUnion(sessions)
    }
    batch.endedSessions += try snapshot.sessions(account: account).map(\.digest)
      .filter { !keptSessions.contains($0) }
    // Links that an administrator issued are for the account in its former state, and so is the
    // consent for a program that has not fetched its tokens yet.
    for kind in [
      DirectoryEntry.Kind.accountExport, .addressVerification, .deviceCode, .passwordReset,
    ] {
      batch.removedEntries += try snapshot.entries(
        DirectoryRange(kind, owner: account, limit: .max)
      ).map(\.key)
    }
    try devices.endDevices(of: account, snapshot, in: &batch) { binding in
      if let grant = binding.grant { return grant != keptGrant }
      return binding.session.map { !keptSessions.contains($0) } ?? true
    }
  }
}
