import CloudKitWebServices
import Effects
import Foundation

/// Deletes containers with everything in them, in transactions of limited size.
///
/// The deletion is stored first, with the end of all credentials of the container; each database leaves
/// the directory after its rows and files are gone. A server that stops leaves the rest to the next one,
/// and several servers may do it at once.
final class ContainerErasures: Sendable {
  private let storage: any Storage
  private let writer: StorageWriter
  private let assets: AssetService
  private let quotas: DatabaseQuotas
  private let sessions: SessionService
  private let limits: ServiceLimits
  private let effects: Effects

  init(
    storage: any Storage,
    writer: StorageWriter,
    assets: AssetService,
    quotas: DatabaseQuotas,
    sessions: SessionService,
    limits: ServiceLimits,
    effects: Effects
  ) {
    self.storage = storage
    self.writer = writer
    self.assets = assets
    self.quotas = quotas
    self.sessions = sessions
    self.limits = limits
    self.effects = effects
  }

  /// Counts what a container holds; throws if that takes longer than a number of seconds.
  func contents(
    of container: String,
    within seconds: Double = .infinity
  ) async throws -> ContainerContents {
    let end = effects.clock.uptime + seconds
    var found = ContainerContents()
    let owned = try storage.read { try Self.databases(of: container, $0) }
    (found.people, found.apiTokens, found.keys) = try storage.read { snapshot in
      let keys = try ServerKey.owners(in: container).reduce(0) {
        try $0 + snapshot.entries(DirectoryRange(.serverKey, owner: $1, limit: .max)).count
      }
      // Each key is a user of its container, and so is the operator.
      let isOperated =
        try snapshot.user(container: container, account: OperatorIdentity.account) != nil
      return (
        max(try snapshot.userCount(container: container) - keys - (isOperated ? 1 : 0), 0),
        try snapshot.apiTokens().count { $0.scope == .container(container) }, keys
      )
    }
    found.databases = owned.count
    for (key, id) in owned {
      guard effects.clock.uptime < end else { throw CancellationError() }
      let users = RecordTypeSchema.users.name
      found.records += try storage.read { snapshot in
        try snapshot.recordCount(in: id, type: nil)
          - (key.scope == .public ? snapshot.recordCount(in: id, type: users) : 0)
      }
      found.bytes += try await quotas.usedBytes(in: id)
      let files = try await assets.store.files(in: id)
      found.files += files.count
      found.fileBytes += files.reduce(0) { $0 + $1.size }
    }
    return found
  }

  /// Whether a container is there to be deleted, wholly or what an interrupted deletion has left.
  func isKnown(_ container: String) throws -> Bool {
    try storage.read { snapshot in
      if try snapshot.containers().contains(container) { return true }
      let entry = try snapshot.entry(ContainerErasing.key(container))
      return entry.map { $0.expires == nil } ?? false
    }
  }

  /// Stores that a container is deleted, and ends every credential for it.
  func begin(_ container: String) async throws {
    let key = ContainerErasing.key(container)
    try await writer.write { [storage] in
      let known = try storage.read { try $0.entry(key) }
      // Another call has begun it.
      guard known == nil || known?.expires != nil else { return (nil, ()) }
      var batch = WriteBatch()
      batch.expectedEntries[key] = .some(known?.revision)
      batch.savedEntries = [DirectoryEntry(key, revision: (known?.revision ?? 0) + 1)]
      batch.erasedContainer = container
      return (batch, ())
    }
    sessions.credentialsEnded()
  }

  /// Erases all containers whose deletion has begun; one that fails does not prevent the others.
  func finishAll() async throws { try await run(for: .infinity) }

  /// Erases for a number of seconds, at least one step of each container.
  func run(for seconds: Double) async throws {
    let begun = try await writer.read {
      try $0.entries(DirectoryRange(.containerErasing, limit: .max))
    }
    var steps = EveryStep()
    for entry in begun where entry.expires == nil {
      try await steps.run(entry.key.name) { _ = try await erase(entry.key.name, for: seconds) }
    }
    try steps.finish()
  }

  /// Erases a container for a number of seconds, at least one step; returns whether nothing is left.
  ///
  /// Each step asks whether the deletion is still under way: another server may have ended it, and a container
  /// of the same name may have been opened since.
  func erase(_ container: String, for seconds: Double) async throws -> Bool {
    let end = effects.clock.uptime + seconds
    while true {
      let left = try await writer.read { snapshot in
        try Self.deletion(of: container, snapshot).map { _ in
          try Self.databases(of: container, snapshot)
        }
      }
      guard let left else { return true }
      // First: addresses of files are good as long as the grant that they were issued to.
      while try await forgetUsers(of: container) {
        guard effects.clock.uptime < end else { return false }
      }
      for (key, id) in left {
        while try await thin(key, id) {
          guard effects.clock.uptime < end else { return false }
        }
        try await remove(key, id)
        guard effects.clock.uptime < end else { return false }
      }
      // A request that began before may have created something since it was listed.
      if try await finish(container) { return true }
    }
  }

  // MARK: Databases

  private static func databases(
    of container: String,
    _ snapshot: any StorageSnapshot
  ) throws -> [(key: PartitionKey, value: PartitionID)] {
    try ContainerEnvironment.allCases.flatMap {
      try snapshot.partitions(container: container, environment: $0)
    }.sorted { $0.value.rawValue < $1.value.rawValue }
  }

  /// The entry of a deletion that is under way.
  private static func deletion(
    of container: String,
    _ snapshot: any StorageSnapshot
  ) throws -> DirectoryEntry? {
    let entry = try snapshot.entry(ContainerErasing.key(container))
    return entry?.expires == nil ? entry : nil
  }

  /// A batch of a deletion that is under way, for a database that was not removed yet; nil if another server
  /// has done either.
  private static func batch(
    for key: PartitionKey,
    _ id: PartitionID,
    _ snapshot: any StorageSnapshot
  ) throws -> WriteBatch? {
    guard let entry = try deletion(of: key.container, snapshot),
      try snapshot.partitions(container: key.container, owner: key.owner)[key] == id
    else { return nil }
    var batch = WriteBatch(partition: id)
    batch.expectedEntries[entry.key] = .some(entry.revision)
    return batch
  }

  /// Deletes some rows of a database, until those that are left fit in one transaction; returns false
  /// then.
  private func thin(_ key: PartitionKey, _ id: PartitionID) async throws -> Bool {
    try Task.checkCancellation()
    return try await writer.write(to: id) { [storage, limits] () -> (WriteBatch?, Bool) in
      let step = limits.removalStep
      return try storage.read { snapshot in
        guard var batch = try Self.batch(for: key, id, snapshot),
          try snapshot.exceeds(step, in: id, .partition)
        else { return (nil, false) }
        batch.thinning = .partition
        batch.removalStep = step
        return (batch, true)
      }
    }
  }

  /// Deletes the last rows, then the files, then the database itself: what is left of an interruption
  /// is found by the database's row.
  private func remove(_ key: PartitionKey, _ id: PartitionID) async throws {
    for isLast in [false, true] {
      if isLast {
        for file in try await assets.store.files(in: id) {
          try Task.checkCancellation()
          try await assets.store.remove(AssetPlace(id, file.name))
        }
      }
      try await writer.write(to: id) { [storage] in
        guard var batch = try storage.read({ try Self.batch(for: key, id, $0) }) else {
          return (nil, ())
        }
        batch.erasure = isLast ? .partition : .rows
        batch.unsharedPartition = id
        batch.unlinkedPartitions = [id]
        return (batch, ())
      }
    }
  }

  // MARK: Users

  /// Removes some users with their devices and consents; returns whether there were any.
  ///
  /// Their accounts stay.
  private func forgetUsers(of container: String) async throws -> Bool {
    try Task.checkCancellation()
    return try await writer.write { [storage, limits] () -> (WriteBatch?, Bool) in
      try storage.read { snapshot in
        let users = try snapshot.users(container: container, limit: limits.itemsPerRequest)
        guard !users.isEmpty, let entry = try Self.deletion(of: container, snapshot) else {
          return (nil, false)
        }
        var batch = WriteBatch()
        batch.expectedEntries[entry.key] = .some(entry.revision)
        batch.removedUsers = users
        for user in users {
          batch.removedEntries.append(Discoverability.key(user.account, in: container))
          let grants = DirectoryRange(.refreshToken, owner: user.account, limit: .max)
          for entry in try snapshot.entries(grants)
          where try WireCoding.decode(RefreshGrant.self, from: entry.body).container == container {
            batch.removedEntries.append(entry.key)
          }
        }
        return (batch, true)
      }
    }
  }

  /// Ends the deletion if nothing is left; returns whether it has ended.
  private func finish(_ container: String) async throws -> Bool {
    let key = ContainerErasing.key(container)
    let expires = effects.now.wireMilliseconds + Int64(ContainerErasing.memory * 1000)
    return try await writer.write { [storage] () -> (WriteBatch?, Bool) in
      try storage.read { snapshot in
        guard let entry = try Self.deletion(of: container, snapshot) else { return (nil, true) }
        let hasDatabases = try ContainerEnvironment.allCases.contains {
          try !snapshot.partitions(container: container, environment: $0).isEmpty
        }
        let hasUsers = try snapshot.userCount(container: container) > 0
        guard !hasDatabases, !hasUsers else { return (nil, false) }
        var batch = WriteBatch()
        batch.expectedEntries[key] = .some(entry.revision)
        batch.savedEntries = [DirectoryEntry(key, revision: entry.revision + 1, expires: expires)]
        batch.erasedContainer = container
        // Removes the device codes of programs that wait for a user's consent.
        let waiting = try snapshot.entries(DirectoryRange(.deviceCode, limit: .max)).filter {
          try WireCoding.decode(DeviceAuthorization.self, from: $0.body).container == container
        }
        batch.removedEntries = waiting.map(\.key)
        return (batch, true)
      }
    }
  }
}
