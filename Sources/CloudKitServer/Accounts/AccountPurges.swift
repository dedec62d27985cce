import CloudKitWebServices
import Effects
import Foundation

/// Purges accounts: removes their data, and the account from other users' shares.
final class AccountPurges: Sendable {
  private let storage: any Storage
  private let writer: StorageWriter
  private let zones: ZoneService
  private let sessions: SessionService
  private let delivery: NotificationDelivery
  private let limits: ServiceLimits
  private let effects: Effects

  init(
    storage: any Storage,
    writer: StorageWriter,
    zones: ZoneService,
    sessions: SessionService,
    delivery: NotificationDelivery,
    limits: ServiceLimits,
    effects: Effects
  ) {
    self.storage = storage
    self.writer = writer
    self.zones = zones
    self.sessions = sessions
    self.delivery = delivery
    self.limits = limits
    self.effects = effects
  }

  /// Milliseconds since 1970.
  private var now: Int64 { effects.now.wireMilliseconds }

  /// Purges the accounts whose purge is due; one that fails does not prevent the others.
  func purgeDeleted() async throws {
    let due = now - Int64(limits.purgeDelay * 1000)
    let deleted = try storage.read { snapshot in
      try snapshot.entries(DirectoryRange(.accountState, limit: .max)).filter { entry in
        let state = try WireCoding.decode(AccountState.self, from: entry.body)
        return state.deletedAt.map { $0 <= due } ?? false
      }
    }
    var steps = EveryStep()
    for entry in deleted {
      try await steps.run(entry.key.name) { try await purge(entry.key.name) }
    }
    try steps.finish()
  }

  /// Removes an account's data, one partition in each transaction, and the account last: an
  /// interrupted purge is found and finished by the next one.
  ///
  /// An account whose deletion was reverted meanwhile keeps its data.
  func purge(_ account: String) async throws {
    guard try await begin(account) else { return }
    for user in try storage.read({ try $0.users(account: account) }) {
      try await leaveShares(user)
      try await eraseDatabases(of: user)
      try await forget(user)
    }
    try await writer.write { [storage] in
      var batch = WriteBatch()
      batch.removedAccounts = [account]
      let identities = try storage.read {
        try $0.entries(DirectoryRange(.identity, owner: account))
      }
      let networks = try storage.read {
        try $0.entries(DirectoryRange(.knownNetwork, owner: account, limit: .max))
      }
      let consents = try storage.read {
        try $0.entries(DirectoryRange(.discoverability, owner: account, limit: .max))
      }
      batch.removedEntries =
        [AccountState.key(account), SecondFactor.key(account)] + identities.map(\.key)
        + networks.map(\.key) + consents.map(\.key)
      if let number = try storage.read({ try $0.phoneNumber(ofAccount: account) }) {
        batch.removedEntries.append(DirectoryEntry.Key(.phoneNumber, number))
      }
      return (batch, ())
    }
    sessions.credentialsEnded()
  }

  /// Notes that the account's data are being removed, which ends the time for a restoration; false if it is not deleted.
  private func begin(_ account: String) async throws -> Bool {
    try await writer.write { [storage] () -> (WriteBatch?, Bool) in
      var (state, revision) = try storage.read { try $0.state(of: account) }
      guard state.deletedAt != nil else { return (nil, false) }
      guard state.isBeingPurged != true else { return (nil, true) }
      state.isBeingPurged = true
      var batch = WriteBatch()
      batch.expectedEntries[AccountState.key(account)] = .some(revision)
      batch.savedEntries = [try state.entry(account, revision: (revision ?? 0) + 1)]
      return (batch, true)
    }
  }

  // MARK: Other users' databases

  /// Ends a user's participation in every share, as if they had left.
  private func leaveShares(_ user: StoredUser) async throws {
    for environment in ContainerEnvironment.allCases {
      let links = try storage.read {
        try $0.shareLinks(
          container: user.container,
          environment: environment,
          user: user.recordName,
          owner: nil
        )
      }
      for link in links { try await leave(link) }
    }
  }

  private func leave(_ link: StoredShareLink) async throws {
    let note = try await writer.write(to: link.partition) {
      [self] () -> (WriteBatch?, CommitNotification?) in
      try storage.read { snapshot in
        var batch = WriteBatch(partition: link.partition)
        // Also the kept replies of the user's devices.
        batch.forgottenUsers = [link.user]
        let key = RecordKey(zone: link.zone, name: link.share)
        let found = try snapshot.records(in: link.partition, keys: [key])[key]
        guard let old = found, !old.isDeleted, var sharing = try old.decodedSharing(),
          sharing.state?.mentions(link.user) == true,
          var row = try snapshot.zones(in: link.partition, named: [link.zoneName]).first,
          row.number == link.zone, row.ending == nil
        else { return (batch, nil) }
        let counter = try snapshot.database(link.partition).counter
        let stamping = RecordStamping(
          now: now,
          user: link.user,
          device: nil,
          randomness: effects.randomness
        )
        sharing.state?.forget(link.user, at: counter.next)
        var share = old
        share.change = counter.next
        share.tag = stamping.tag()
        share.modified = stamping.stamp
        share.membership?.seen = counter.next
        share.sharing = try WireCoding.encode(sharing)
        row.change = counter.next
        batch.expectedCounter = counter
        batch.counter = counter.next
        batch.records = [share]
        try snapshot.reindex(old, as: share, in: link.partition, &batch)
        batch.zones = [row]
        var note = CommitNotification(
          process: delivery.process,
          container: link.container,
          environment: link.environment,
          scope: .private,
          owner: link.owner,
          partition: link.partition,
          author: link.user
        )
        note.zones = [row.name]
        note.shares = [
          CommitNotification.TouchedShare(zone: row.number, zoneName: row.name, share: link.share)
        ]
        note.savedCount = 1
        try delivery.post(&note, in: &batch)
        return (batch, note)
      }
    }
    if let note { delivery.announce(note) }
  }

  // MARK: The account's own data

  /// Zones that others see are deleted first, so that those users are notified.
  private func eraseDatabases(of user: StoredUser) async throws {
    let owned = try storage.read {
      try $0.partitions(container: user.container, owner: user.recordName)
    }
    for (key, id) in owned {
      for zone in try storage.read({ try $0.livingZones(in: id) }) where key.scope == .private {
        let isShared = try storage.read { snapshot in
          try !snapshot.shares(in: id, zone: zone.number, after: "", limit: 1) { _ in true }.isEmpty
        }
        guard isShared else { continue }
        try await zones.end(
          named: zone.name,
          container: key.container,
          environment: key.environment,
          userRecordName: user.recordName,
          ending: .purged
        )
      }
      while try await thin(id) { try Task.checkCancellation() }
      // Links of former participants find no zone; they are removed when no feed needs them any
      // more.
      let mark = DirectoryEntry(
        DirectoryEntry.Key(.purgedPartition, String(id.rawValue)),
        body: try WireCoding.encode(now)
      )
      try await writer.write(to: id) {
        var batch = WriteBatch(partition: id)
        batch.erasure = .rows
        batch.unsharedPartition = id
        batch.savedEntries = [mark]
        return (batch, ())
      }
    }
  }

  /// Deletes some rows of a database, until those that are left fit in one transaction; returns false
  /// then.
  private func thin(_ id: PartitionID) async throws -> Bool {
    try await writer.write(to: id) { [storage, limits] () -> (WriteBatch?, Bool) in
      let step = limits.removalStep
      guard try storage.read({ try $0.exceeds(step, in: id, .partition) }) else {
        return (nil, false)
      }
      var batch = WriteBatch(partition: id)
      batch.thinning = .partition
      batch.removalStep = step
      return (batch, true)
    }
  }

  /// Removes the user's record and subscriptions in the public databases, and rows in the
  /// directory.
  private func forget(_ user: StoredUser) async throws {
    for environment in ContainerEnvironment.allCases {
      let key = PartitionKey(
        container: user.container,
        environment: environment,
        scope: .public,
        owner: ""
      )
      try await writer.write { [storage] in
        // Nil in a container that is being deleted.
        let id = try storage.knownPartition(key)
        var batch = WriteBatch(partition: id)
        if id != nil {
          batch.erasedRecords = [RecordKey(zone: .defaultZone, name: user.recordName)]
          batch.relinkedRecords = batch.erasedRecords
          batch.forgottenUsers = [user.recordName]
        }
        batch.forgottenLinks = [
          WriteBatch.ForgottenLinks(
            container: user.container,
            environment: environment,
            user: user.recordName
          )
        ]
        return (batch, ())
      }
    }
  }

  /// Removes other users' links to databases whose deletion every feed has reported.
  func forgetPartitions() async throws {
    let due = now - Int64(limits.traceLifetime * 1000)
    let marks = try storage.read { try $0.entries(DirectoryRange(.purgedPartition, limit: .max)) }
    for mark in marks {
      guard let id = Int64(mark.key.name), try WireCoding.decode(Int64.self, from: mark.body) <= due
      else { continue }
      try await writer.write {
        var batch = WriteBatch()
        batch.unlinkedPartitions = [PartitionID(rawValue: id)]
        batch.removedEntries = [mark.key]
        return (batch, ())
      }
    }
  }
}
