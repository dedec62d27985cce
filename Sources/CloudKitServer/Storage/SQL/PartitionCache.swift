import Synchronization

/// The numbers of partitions that were looked up, by their keys; a number never changes.
final class PartitionCache: Sendable {
  private let known = Mutex<[PartitionKey: PartitionID]>([:])
  private let limit: Int

  /// A missing partition costs one look-up.
  init(limit: Int = 100_000) { self.limit = limit }

  subscript(key: PartitionKey) -> PartitionID? { known.withLock { $0[key] } }

  func remember(_ id: PartitionID, for key: PartitionKey) {
    known.withLock { known in
      if known.count >= limit { known.removeAll() }
      known[key] = id
    }
  }

  /// Removes a partition that is missing in the database, so that it is looked up again.
  func forget(_ id: PartitionID?) {
    known.withLock { known in known = known.filter { $0.value != id } }
  }

  func removeAll() { known.withLock { $0.removeAll() } }
}
