import CloudKitWebServices
import Effects
import Foundation

/// The sizes of databases, and their limits.
final class DatabaseQuotas: Sendable {
  let ledger = QuotaLedger()
  private let storage: any Storage
  private let assets: any AssetStore
  private let limits: ServiceLimits
  private let effects: Effects
  /// The lanes in which databases are counted.
  private let lanes: [Lane]

  init(
    _ storage: any Storage,
    _ assets: any AssetStore,
    _ limits: ServiceLimits,
    _ effects: Effects
  ) {
    self.storage = storage
    self.assets = assets
    self.limits = limits
    self.effects = effects
    lanes = (0..<4).map { effects.waitingLane("server quotas \($0)") }
  }

  /// Milliseconds of the monotonic clock.
  private var now: Int64 { Int64(effects.clock.uptime * 1000) }

  /// Refuses writes that grow a full database; deletions are always accepted.
  func check(
    _ context: RequestContext,
    _ partition: PartitionID,
    adding bytes: Int64 = 0
  ) async throws {
    try await checkShare(context, partition, adding: bytes)
    guard let quota = quota(context) else { return }
    guard try await usedBytes(in: partition) < quota else {
      throw ErrorDictionary(
        .quotaExceeded,
        "the database holds its \(quota) bytes; delete something first",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
  }

  /// Refuses to add to a public database for a user whose records take the user's share of it.
  ///
  /// A program with a server-to-server key is the operator's, and has no share.
  private func checkShare(
    _ context: RequestContext,
    _ partition: PartitionID,
    adding bytes: Int64
  ) async throws {
    guard context.scope == .public, let share = limits.publicUserQuota,
      let user = context.caller.limitedUser?.userRecordName,
      // One user's bytes never exceed the database's, so a small database needs no count.
      try await usedBytes(in: partition) >= share
    else { return }
    let time = now
    let known = ledger.isFull(user, in: partition, adding: bytes, share: share, now: time)
    let isFull: Bool
    if let known {
      isFull = known
    } else {
      let full = Set(try storage.read { try $0.creators(in: partition, holding: share) })
      ledger.note(full: full, in: partition, now: time)
      isFull = full.contains(user)
    }
    guard !isFull else { throw Self.shareIsFull(share) }
  }

  /// The error for bytes that exceed a user's share of a public database, or of another user's.
  static func shareIsFull(_ share: Int64, in scope: DatabaseScope = .public) -> ErrorDictionary {
    ErrorDictionary(
      .quotaExceeded,
      scope == .shared
        ? "your files take the \(share) bytes that one participant may upload to this database"
        : "your records take the \(share) bytes that one user may have in this public database",
      extension: ErrorExtension(code: .limitExceeded)
    )
  }

  private func quota(_ context: RequestContext) -> Int64? {
    context.scope == .public ? limits.publicQuota : limits.userQuota
  }

  /// Counts a full database again a minute after its last count, not after the longer time for
  /// which a slow count is used: rows of it were deleted.
  func noteDeletion(_ context: RequestContext, _ partition: PartitionID) {
    if let quota = quota(context) { ledger.noteDeletion(in: partition, quota: quota) }
  }

  /// Counts what is added until the next count.
  func add(_ bytes: Int64, in partition: PartitionID) { ledger.add(bytes, in: partition) }

  /// The bytes that a file counts in a quota: its size, and one block of the disk for its metadata.
  static func room(of size: Int64) -> Int64 { size + 4096 }

  /// The bytes of a database's records and files.
  func usedBytes(in partition: PartitionID) async throws -> Int64 {
    while true {
      switch await ledger.claim(partition, now: now) {
      case .known(let bytes): return bytes
      case .retry: continue
      case .count:
        do {
          let start = now
          let bytes = try await countBytes(in: partition)
          ledger.finish(partition, bytes, now: now, took: now - start)
          return bytes
        } catch {
          ledger.finish(partition, nil, now: now)
          throw error
        }
      }
    }
  }

  private func countBytes(in partition: PartitionID) async throws -> Int64 {
    // Sums of many rows: beside the pool, and beside other users' counts.
    let lane = lanes[Int(partition.rawValue.magnitude >> 1) % lanes.count]
    let records = try await lane.run { [storage] in
      try storage.read { try $0.recordBytes(in: partition) }
    }
    return try await assets.files(in: partition).reduce(records) {
      $0 + Self.room(of: $1.size)
    }
  }
}
