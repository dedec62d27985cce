import CloudKitWebServices
import Effects

/// Loads, decides and commits, in lanes of its own: threads of the pool do not block on the disk.
///
/// As many lanes as the storage can use at a time; a partition's writes are queued in one of them.
final class StorageWriter: Sendable {
  private let storage: any Storage
  private let effects: Effects
  private let lanes: [Lane]
  private let maintenance: Lane
  private let probing: Lane
  let times = CommitTimes()

  init(_ storage: any Storage, _ effects: Effects) {
    self.storage = storage
    self.effects = effects
    lanes = (0..<storage.writerCount).map { effects.waitingLane("server storage \($0)") }
    maintenance = effects.waitingLane("server maintenance")
    probing = effects.waitingLane("server readiness")
  }

  /// Reads for work of the server itself: no thread of the pool waits for a database that hangs.
  func read<Result: Sendable>(
    _ body: @escaping @Sendable (any StorageSnapshot) throws -> Result
  ) async throws -> Result {
    try await maintenance.run { [storage] in try storage.read(body) }
  }

  /// Reads to learn whether the storage answers, behind no other work.
  func probe<Result: Sendable>(
    _ body: @escaping @Sendable (any StorageSnapshot) throws -> Result
  ) async throws -> Result {
    try await probing.run { [storage] in try storage.read(body) }
  }

  /// The lane of writes outside partitions.
  var directoryLane: Lane { lanes[0] }

  /// Whether the caller runs in one of the lanes.
  var isCurrent: Bool { lanes.contains(where: \.isCurrent) }

  /// Loads, decides and commits; repeated if the loaded rows were changed in between.
  ///
  /// Writes to the same partition are serialized within this process.
  func write<Result: Sendable>(
    to partition: PartitionID? = nil,
    _ decide: @escaping @Sendable () throws -> (WriteBatch?, Result)
  ) async throws -> Result {
    try await lanes[Self.lane(of: partition, count: lanes.count)].run { [storage, effects, times] in
      for _ in 0..<16 {
        let (batch, result) = try decide()
        guard let batch else { return result }
        let start = effects.clock.uptime
        do {
          try storage.commit(batch)
          times.committed(in: effects.clock.uptime - start)
          return result
        } catch is ExpectationFailed {
          times.repeated()
          continue
        }
      }
      throw ErrorDictionary(.tryAgainLater, "the database is busy", retryAfter: 1)
    }
  }

  /// The lane of a partition; the first one is the directory's alone, if there are others.
  static func lane(of partition: PartitionID?, count: Int) -> Int {
    guard let partition, count > 1 else { return 0 }
    // All numbers of partitions are odd.
    return 1 + Int((partition.rawValue.magnitude >> 1) % UInt64(count - 1))
  }
}
