import CloudKitWebServices
import Effects
import Foundation

/// Limits how often passwords and codes may be guessed: counts attempts that failed.
final class SignInLimiter: Sendable {
  private let storage: any Storage
  private let writer: StorageWriter
  private let auditLog: AuditLog
  private let limits: ServiceLimits
  private let effects: Effects
  private let sendsMail: Bool

  init(
    storage: any Storage,
    writer: StorageWriter,
    auditLog: AuditLog,
    limits: ServiceLimits,
    effects: Effects,
    sendsMail: Bool
  ) {
    self.storage = storage
    self.writer = writer
    self.auditLog = auditLog
    self.limits = limits
    self.effects = effects
    self.sendsMail = sendsMail
  }

  /// Milliseconds since 1970.
  private var now: Int64 { effects.now.wireMilliseconds }

  /// Counts an attempt as failed before its password is hashed, so that concurrent attempts cannot
  /// exceed the limit; `settle` reverts it if the password was right.
  func reserve(_ attempt: SignInAttempt) async throws {
    // Refusals are the common case under attack, and need no write.
    do {
      try refuseExhausted(attempt, now)
    } catch {
      auditLog.logRefusal(of: attempt.sender)
      throw error
    }
    let time = now
    let usual = limits.signInPause
    try await writer.write { [storage] in
      try storage.read { snapshot in
        var batch = WriteBatch()
        let isKnown = try self.isKnown(attempt, snapshot)
        for bucket in attempt.buckets where !(isKnown && bucket.sparesKnownNetworks) {
          let entry = try snapshot.entry(bucket.key)
          var count = try SignInCount(entry, now: time)
          try self.refuse(count, entry, bucket, time)
          count.failures += 1
          // A window begins with its first failure; the pause begins with the last one.
          let isNew = count.failures == 1 || count.failures >= bucket.limit
          batch.expectedEntries[bucket.key] = .some(entry?.revision)
          batch.savedEntries.append(
            DirectoryEntry(
              bucket.key,
              owner: bucket.owner,
              revision: (entry?.revision ?? 0) + 1,
              expires: isNew
                ? time + Int64((bucket.pause ?? usual) * 1000) : entry?.expires,
              body: try WireCoding.encode(count)
            )
          )
        }
        return (batch, ())
      }
    }
  }

  /// Reverts a reserved failure and remembers the network.
  ///
  /// If the attempt is not `isComplete`, such as a right password without a code, no other failure
  /// is reset and no network becomes known.
  func settle(
    _ attempt: SignInAttempt,
    of account: String,
    isComplete: Bool = true
  ) async throws {
    let time = now
    let lifetime = Int64(limits.knownNetworkLifetime * 1000)
    try await writer.write { [storage] in
      try storage.read { snapshot in
        var batch = WriteBatch()
        let isKnown = try self.isKnown(attempt, snapshot)
        for bucket in attempt.buckets where !(isKnown && bucket.sparesKnownNetworks) {
          guard var entry = try snapshot.entry(bucket.key) else { continue }
          batch.expectedEntries[bucket.key] = .some(entry.revision)
          var count = try SignInCount(entry, now: time)
          count.failures -= 1
          if (isComplete && bucket.isClearedBySuccess) || count.failures <= 0 {
            batch.removedEntries.append(bucket.key)
          } else {
            entry.revision += 1
            entry.body = try WireCoding.encode(count)
            batch.savedEntries.append(entry)
          }
        }
        if isComplete, let key = attempt.known {
          batch.savedEntries.append(
            DirectoryEntry(key, owner: account, expires: time + lifetime)
          )
        }
        return (batch, ())
      }
    }
  }

  /// Resets the failures of a name from all networks, such as after a password reset: they were
  /// guesses at the former password, or the owner's own.
  func forgetFailures(of userName: String) async throws {
    let owner = SignInAttempt.owner(ofCountsFor: userName)
    try await writer.write { [storage] in
      var batch = WriteBatch()
      batch.removedEntries = try storage.read {
        try $0.entries(DirectoryRange(.signInCount, owner: owner, limit: .max))
      }.map(\.key)
      return (batch, ())
    }
  }

  private func refuseExhausted(_ attempt: SignInAttempt, _ time: Int64) throws {
    try storage.read { snapshot in
      let isKnown = try isKnown(attempt, snapshot)
      for bucket in attempt.buckets where !(isKnown && bucket.sparesKnownNetworks) {
        let entry = try snapshot.entry(bucket.key)
        try refuse(try SignInCount(entry, now: time), entry, bucket, time)
      }
    }
  }

  private func refuse(
    _ count: SignInCount,
    _ entry: DirectoryEntry?,
    _ bucket: SignInAttempt.Bucket,
    _ time: Int64
  ) throws {
    guard count.failures >= bucket.limit else { return }
    throw ErrorDictionary(
      .throttled,
      "too many wrong passwords, try again later",
      retryAfter: max(1, Double((entry?.expires ?? time) - time) / 1000)
    )
  }

  /// Whether the name has recently signed in from the sender's network.
  func isKnown(_ attempt: SignInAttempt) throws -> Bool {
    try storage.read { try isKnown(attempt, $0) }
  }

  /// Whether an account has recently signed in from any network.
  func hasKnownNetworks(_ account: String) throws -> Bool {
    guard sendsMail else { return false }
    let time = now
    return try storage.read {
      try $0.entries(DirectoryRange(.knownNetwork, owner: account, limit: .max))
    }.contains { ($0.expires ?? 0) > time }
  }

  private func isKnown(
    _ attempt: SignInAttempt,
    _ snapshot: any StorageSnapshot
  ) throws -> Bool {
    guard let key = attempt.known, let entry = try snapshot.entry(key) else { return false }
    return (entry.expires ?? 0) > now
  }
}
