import CloudKitWebServices
import Foundation

/// One attempt to sign in with a password, and the counters that include it.
///
/// Counters limit guessing. For a name from one network: ten, so that an attacker elsewhere does
/// not lock the owner out. For a network over all names: thirty, against one password tried with
/// many names. For a name over all networks: a hundred, against many senders. An IPv6 network is
/// part of a site, all of which one sender may have: the site has counters of both kinds too.
/// Networks from which the name has signed in before are exempt from the last three. Keys are
/// digests, so that a name's length does not matter.
struct SignInAttempt: Sendable {
  /// A counter that includes an attempt.
  struct Bucket: Hashable, Sendable {
    var key: DirectoryEntry.Key
    var limit: Int
    /// Networks from which the name has signed in are not counted.
    var sparesKnownNetworks: Bool
    /// A success resets it: the earlier failures were the owner's.
    var isClearedBySuccess: Bool
    /// The owner of the entry, by which all counters of one name are found.
    var owner = ""
    /// Seconds that sign-ins are then refused; nil: the default of names and networks.
    var pause: Double?
  }

  let sender: SenderAddress?
  let buckets: [Bucket]
  /// The entry that remembers a success from this network; nil without a network.
  let known: DirectoryEntry.Key?

  init(userName: String, sender: SenderAddress?, limits: ServiceLimits) {
    self.sender = sender
    let name = StoredAccount.folded(userName)
    let network = sender?.network ?? ""
    func key(_ kind: DirectoryEntry.Kind, _ parts: String...) -> DirectoryEntry.Key {
      DirectoryEntry.Key(kind, CloudKitService.digest(parts.joined(separator: "\0")))
    }
    let owner = Self.owner(ofCountsFor: userName)
    var buckets = [
      Bucket(
        key: key(.signInCount, "name and network", network, name),
        limit: limits.failedSignIns,
        sparesKnownNetworks: false,
        isClearedBySuccess: true,
        owner: owner
      )
    ]
    if let sender {
      buckets += [
        Bucket(
          key: key(.signInCount, "network", network),
          limit: limits.failedSignInsPerNetwork,
          sparesKnownNetworks: false,
          isClearedBySuccess: false
        ),
        Bucket(
          key: key(.signInCount, "name", name),
          limit: limits.failedSignInsPerAccount,
          sparesKnownNetworks: true,
          isClearedBySuccess: false,
          owner: owner,
          pause: limits.accountPause
        ),
      ]
      if sender.isPartOfSite {
        buckets += [
          Bucket(
            key: key(.signInCount, "site", sender.site),
            limit: limits.failedSignInsPerSite,
            sparesKnownNetworks: true,
            isClearedBySuccess: false
          ),
          Bucket(
            key: key(.signInCount, "name and site", sender.site, name),
            limit: limits.failedSignInsOfNamePerSite,
            sparesKnownNetworks: true,
            isClearedBySuccess: false,
            owner: owner
          ),
        ]
      }
    }
    self.buckets = buckets
    known = sender == nil ? nil : key(.knownNetwork, network, name)
  }

  /// An attempt with a code after a right password; from all networks together.
  init(codeOf account: StoredAccount, sender: SenderAddress?, limits: ServiceLimits) {
    self.sender = sender
    buckets = [
      Bucket(
        key: DirectoryEntry.Key(.signInCount, CloudKitService.digest("code\0\(account.id)")),
        limit: limits.failedCodes,
        sparesKnownNetworks: false,
        isClearedBySuccess: true,
        pause: limits.codePause
      )
    ]
    known = nil
  }

  /// The owner of a name's counters; a digest too, since a name may belong to no account.
  static func owner(ofCountsFor userName: String) -> String {
    CloudKitService.digest("sign-in counts\0\(StoredAccount.folded(userName))")
  }
}

/// The number of recent wrong passwords; in the storage, so that it survives a restart and is
/// shared by all servers of a database.
struct SignInCount: Codable, Hashable, Sendable {
  var failures = 0

  /// The counter of an entry; a new one if there is none or its window has ended.
  init(_ entry: DirectoryEntry?, now: Int64) throws {
    guard let entry, (entry.expires ?? 0) > now else { return }
    self = try WireCoding.decode(SignInCount.self, from: entry.body)
  }
}

extension CloudKitService {
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
    try await write { [storage] in
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
    try await write { [storage] in
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
    try await write { [storage] in
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
    guard mails.isOn else { return false }
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
