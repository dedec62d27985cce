import CloudKitWebServices
import Foundation
import Synchronization

/// How much databases hold, as of a moment ago.
final class QuotaLedger: Sendable {
  private struct Usage {
    var bytes: Int64
    /// Milliseconds since 1970.
    var counted: Int64
  }

  /// Milliseconds after which a database is counted again: a quota is a fence, not a balance.
  private static let freshness: Int64 = 60_000
  /// Bounds the memory; forgetting costs one count.
  private static let limit = 10_000

  private let usages = Mutex<[PartitionID: Usage]>([:])

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

  /// Counts what is added until the next count.
  func add(_ bytes: Int64, in partition: PartitionID) {
    usages.withLock { $0[partition]?.bytes += bytes }
  }
}

extension CloudKitService {
  /// Refuses to put more into a database that is full; what frees room always passes.
  func checkQuota(_ context: RequestContext, _ partition: PartitionID) async throws {
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

  /// What a file takes of a quota: its bytes, and a block of the disk for what belongs to it.
  static func room(of size: Int64) -> Int64 { size + 4096 }

  /// Bytes of a database's records and files.
  func usedBytes(in partition: PartitionID) async throws -> Int64 {
    if let known = quotas.bytes(in: partition, now: now) { return known }
    let records = try storage.read { try $0.recordBytes(in: partition) }
    let files = try await assets.files(in: partition).reduce(0) { $0 + Self.room(of: $1.size) }
    quotas.note(records + files, in: partition, now: now)
    return records + files
  }
}
