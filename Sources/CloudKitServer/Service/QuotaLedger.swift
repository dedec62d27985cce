import CloudKitWebServices
import Foundation
import Synchronization

/// The size of databases, as of a recent count.
///
/// Times are milliseconds of a monotonic clock: a wall clock that is set back must not extend the
/// use of a count.
final class QuotaLedger: Sendable {
  private struct Usage {
    var bytes: Int64
    var counted: Int64
    /// Milliseconds that the count took.
    var took: Int64
    /// Until when the count is used.
    var isFreshUntil: Int64
  }

  /// How a caller obtains the size of a database.
  enum Claim: Sendable {
    /// A recent count, which the caller uses.
    case known(Int64)
    /// The caller counts, and calls `finish`.
    case count
    /// The count that the caller waited for has failed.
    case retry
  }

  /// Milliseconds until a database is counted again: a quota may be exceeded a little.
  private static let freshness: Int64 = 60_000
  /// A count is used for this many times the time that it took: a user may have millions of files.
  private static let freshnessPerCountTime: Int64 = 50
  /// The factor for a full database from which something was deleted: at most a fifth of the time
  /// is spent on counting it.
  private static let freshnessPerCountTimeAfterDeletion: Int64 = 4
  /// Milliseconds after which any database is counted again.
  private static let longestFreshness: Int64 = 3_600_000
  /// Limits the memory; an evicted database is counted again.
  private static let limit = 10_000

  /// The users whose records in a public database take their whole share.
  private struct Creators {
    var full: Set<String>
    var counted: Int64
    /// Bytes that each user has added since the count.
    var added: [String: Int64] = [:]
  }

  private struct State {
    var usages: [PartitionID: Usage] = [:]
    /// The databases that are being counted, and who waits for the first count of one.
    var counting: [PartitionID: [CheckedContinuation<Claim, Never>]] = [:]
  }

  private let state = Mutex(State())
  private let creators = Mutex<[PartitionID: Creators]>([:])

  /// The callers that wait for a count.
  var waitingCount: Int { state.withLock { $0.counting.values.reduce(0) { $0 + $1.count } } }

  /// The size of a database, or the turn to count it.
  ///
  /// One caller at a time counts a database. The others use the count before, and wait if there is
  /// none.
  func claim(_ partition: PartitionID, now: Int64) async -> Claim {
    await withCheckedContinuation { continuation in
      let claim = state.withLock { state -> Claim? in
        let known = state.usages[partition]
        if let known, now < known.isFreshUntil { return .known(known.bytes) }
        guard state.counting[partition] != nil else {
          state.counting[partition] = []
          return .count
        }
        if let known { return .known(known.bytes) }
        state.counting[partition]?.append(continuation)
        return nil
      }
      if let claim { continuation.resume(returning: claim) }
    }
  }

  /// Ends a count that took `took` milliseconds; nil bytes: it failed.
  func finish(_ partition: PartitionID, _ bytes: Int64?, now: Int64, took: Int64 = 0) {
    let waiting = state.withLock { state in
      if let bytes {
        if state.usages.count >= Self.limit { state.usages.removeAll() }
        let fresh = min(
          max(Self.freshness, took * Self.freshnessPerCountTime),
          Self.longestFreshness
        )
        state.usages[partition] = Usage(
          bytes: bytes,
          counted: now,
          took: took,
          isFreshUntil: now + fresh
        )
      }
      return state.counting.removeValue(forKey: partition) ?? []
    }
    for continuation in waiting {
      continuation.resume(returning: bytes.map { .known($0) } ?? .retry)
    }
  }

  /// Whether a user's records take the user's share of a public database, with the bytes to be
  /// added; nil if the database has to be counted.
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
      // The growth in bytes after which the database is counted again.
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

  /// Counts a full database again soon, because rows of it were deleted.
  func noteDeletion(in partition: PartitionID, quota: Int64) {
    state.withLock { state in
      guard let usage = state.usages[partition], usage.bytes >= quota else { return }
      let fresh = max(Self.freshness, usage.took * Self.freshnessPerCountTimeAfterDeletion)
      state.usages[partition]?.isFreshUntil = min(usage.isFreshUntil, usage.counted + fresh)
    }
  }

  /// Counts what is added until the next count.
  func add(_ bytes: Int64, in partition: PartitionID) {
    state.withLock { $0.usages[partition]?.bytes += bytes }
  }
}
