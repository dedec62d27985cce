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
      DirectoryEntry.Key(kind, TokenDigest.of(parts.joined(separator: "\0")))
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
  ///
  /// A code that is to confirm a factor needs no password, and is counted by itself.
  init(
    codeOf account: StoredAccount,
    isConfirmation: Bool = false,
    sender: SenderAddress?,
    limits: ServiceLimits
  ) {
    self.sender = sender
    let kind = isConfirmation ? "confirmation" : "code"
    buckets = [
      Bucket(
        key: DirectoryEntry.Key(.signInCount, TokenDigest.of("\(kind)\0\(account.id)")),
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
    TokenDigest.of("sign-in counts\0\(StoredAccount.folded(userName))")
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
