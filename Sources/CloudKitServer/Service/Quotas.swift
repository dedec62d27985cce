import CloudKitWebServices
import Foundation
import Synchronization

/// The size of databases, as of a recent count.
final class QuotaLedger: Sendable {
  private struct Usage {
    var bytes: Int64
    /// Milliseconds since 1970.
    var counted: Int64
  }

  /// Milliseconds until a database is counted again: a quota may be exceeded a little.
  private static let freshness: Int64 = 60_000
  /// Limits the memory; an evicted database is counted again.
  private static let limit = 10_000

  /// The people whose records in a public database take their whole share.
  private struct Creators {
    var full: Set<String>
    /// Milliseconds since 1970.
    var counted: Int64
    /// Bytes that each person has added since.
    var added: [String: Int64] = [:]
  }

  private let usages = Mutex<[PartitionID: Usage]>([:])
  private let creators = Mutex<[PartitionID: Creators]>([:])

  func bytes(in partition: PartitionID, now: Int64) -> Int64? {
    usages.withLock { usages in
      guard let usage = usages[partition], now - usage.counted < Self.freshness else { return nil }
      return usage.bytes
    }
  }

  func note(_ bytes: Int64, in partition: PartitionID, now: Int64) {
    usages.withLock { usages in
      if usages.count >= Self.limit { usages.removeAll() }
      usages[partition] = Usage(bytes: bytes, counted: now)
    }
  }

  /// Whether a person's records take their share of a public database, to which they add bytes; nil
  /// where it has to be counted.
  func isFull(
    _ user: String,
    in partition: PartitionID,
    adding bytes: Int64,
    share: Int64,
    now: Int64
  ) -> Bool? {
    creators.withLock { creators in
      guard var known = creators[partition], now - known.counted < Self.freshness else {
        return nil
      }
      if known.full.contains(user) { return true }
      let added = known.added[user, default: 0] + bytes
      // So much more is worth a count.
      guard added <= share / 8, known.added.count < Self.limit else {
        creators[partition] = nil
        return nil
      }
      known.added[user] = added
      creators[partition] = known
      return false
    }
  }

  func note(full users: Set<String>, in partition: PartitionID, now: Int64) {
    creators.withLock { creators in
      if creators.count >= Self.limit { creators.removeAll() }
      creators[partition] = Creators(full: users, counted: now)
    }
  }

  /// Counts what is added until the next count.
  func add(_ bytes: Int64, in partition: PartitionID) {
    usages.withLock { $0[partition]?.bytes += bytes }
  }
}

extension CloudKitService {
  /// Refuses to put more into a database that is full; what frees room always passes.
  func checkQuota(
    _ context: RequestContext,
    _ partition: PartitionID,
    adding bytes: Int64 = 0
  ) async throws {
    try await checkShare(context, partition, adding: bytes)
    let quota = context.scope == .public ? limits.publicQuota : limits.userQuota
    guard let quota else { return }
    guard try await usedBytes(in: partition) < quota else {
      throw ErrorDictionary(
        .quotaExceeded,
        "the database holds its \(quota) bytes; delete something first",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
  }

  /// Refuses to put more into a public database for a person whose records take their share of it.
  ///
  /// A program with a server-to-server key is the operator's, and has no share.
  private func checkShare(
    _ context: RequestContext,
    _ partition: PartitionID,
    adding bytes: Int64
  ) async throws {
    guard context.scope == .public, context.signature == nil, let share = limits.publicUserQuota,
      let user = context.principal?.userRecordName,
      // The records of one person are not more than all.
      try await usedBytes(in: partition) >= share
    else { return }
    let time = now
    let known = quotas.isFull(user, in: partition, adding: bytes, share: share, now: time)
    let isFull: Bool
    if let known {
      isFull = known
    } else {
      let full = Set(try storage.read { try $0.creators(in: partition, holding: share) })
      quotas.note(full: full, in: partition, now: time)
      isFull = full.contains(user)
    }
    guard !isFull else { throw Self.shareIsFull(share) }
  }

  /// The refusal of what exceeds a person's share of a public database.
  static func shareIsFull(_ share: Int64) -> ErrorDictionary {
    ErrorDictionary(
      .quotaExceeded,
      "your records take the \(share) bytes that one person may have in this public database",
      extension: ErrorExtension(code: .limitExceeded)
    )
  }

  /// What a file takes of a quota: its bytes, and a block of the disk for what belongs to it.
  static func room(of size: Int64) -> Int64 { size + 4096 }

  /// The bytes of a database's records and files.
  func usedBytes(in partition: PartitionID) async throws -> Int64 {
    if let known = quotas.bytes(in: partition, now: now) { return known }
    let records = try storage.read { try $0.recordBytes(in: partition) }
    let files = try await assets.files(in: partition).reduce(0) { $0 + Self.room(of: $1.size) }
    quotas.note(records + files, in: partition, now: now)
    return records + files
  }
}
