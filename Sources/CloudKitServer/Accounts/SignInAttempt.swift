import CloudKitWebServices
import Foundation

/// One try to sign in with a password: which counts it is part of.
///
/// Counts bound guessing. Of a name from one network: ten, so that a stranger elsewhere does
/// not lock the owner out. Of a network over all names: thirty, against one password tried on many
/// names. Of a name over all networks: a hundred, against many senders. An IPv6 network is part of a
/// site, which one sender may have whole: the site has counts of both kinds too. Networks that signed
/// in to the name before pass the last three. Keys are digests, so that a name's length costs nothing.
struct SignInAttempt: Sendable {
  /// A count that an attempt is part of.
  struct Bucket: Hashable, Sendable {
    var key: DirectoryEntry.Key
    var limit: Int
    /// Networks that the name was signed in from are not counted here.
    var sparesKnownNetworks: Bool
    /// A success shows that the failures before it were the owner's.
    var isClearedBySuccess: Bool
    /// The owner of the entry: what finds all counts of one name, over all networks.
    var owner = ""
    /// Seconds that what is counted rests; nil: as names and networks do.
    var pause: Double?
  }

  let sender: SenderAddress?
  let buckets: [Bucket]
  /// Where a success from this network is remembered; nil without a network.
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

  /// A try of a code after a right password; from all networks together.
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

  /// The owner of the counts of a name; a digest too, since a name may be no account's.
  static func owner(ofCountsFor userName: String) -> String {
    CloudKitService.digest("sign-in counts\0\(StoredAccount.folded(userName))")
  }
}

/// How often passwords failed lately; kept in the storage, so that it outlasts a restart and is one
/// for all servers of a database.
struct SignInCount: Codable, Hashable, Sendable {
  var failures = 0

  /// The count of an entry; a new one where there is none or its time is over.
  init(_ entry: DirectoryEntry?, now: Int64) throws {
    guard let entry, (entry.expires ?? 0) > now else { return }
    self = try WireCoding.decode(SignInCount.self, from: entry.body)
  }
}

extension CloudKitService {
  /// Counts an attempt as failed before its password is hashed, so that attempts at the same time
  /// cannot pass the limit together; `settle` takes it back where the password was right.
  func reserve(_ attempt: SignInAttempt) async throws {
    // Refusals are the common case of a flood, and take no write.
    do {
      try refuseExhausted(attempt, now)
    } catch {
      logRefusal(of: attempt.sender)
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
          // A window begins with its first failure; the rest begins with the last one.
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

  /// Takes a reserved failure back and remembers the network.
  ///
  /// Where the attempt was `isComplete` only in part, such as a right password without a code, no
  /// other failure is forgotten and no network becomes known.
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

  /// Forgets the failures of a name from all networks, such as after its password was reset: they
  /// were guesses at a password that is no more, or the owner's own.
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

  /// Whether the name was signed in from the sender's network lately.
  func isKnown(_ attempt: SignInAttempt) throws -> Bool {
    try storage.read { try isKnown(attempt, $0) }
  }

  /// Whether an account was signed in to lately from any network.
  func hasKnownNetworks(_ account: String) throws -> Bool {
    guard mail != nil else { return false }
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
