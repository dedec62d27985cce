import Synchronization

/// What an engine remembers between transactions.
struct StorageCaches: Sendable {
  let partitions = PartitionCache()
  let branches = BranchCache()
  let schemas = SchemaCache()

  /// Removes what was read of containers, some of which were deleted.
  func forgetContainers() {
    partitions.removeAll()
    schemas.removeAll()
  }

  /// Runs a batch's commit, and removes what it shows or makes outdated.
  func committing(_ batch: WriteBatch, _ commit: () throws -> Void) throws {
    do {
      try commit()
    } catch let error as ExpectationFailed where error == .partition {
      // It was deleted with its container, and is looked up again.
      partitions.forget(batch.partition)
      throw error
    }
    if batch.endsContainer { forgetContainers() }
  }
}

/// The incarnation of an engine's data, which any thread reads.
final class StorageIdentity: Sendable {
  private let state: Mutex<String>

  init(_ incarnation: String) { state = Mutex(incarnation) }

  var incarnation: String { state.withLock { $0 } }

  /// Replaces the incarnation; returns whether it is another one.
  func adopt(_ incarnation: String) -> Bool {
    state.withLock { state in
      defer { state = incarnation }
      return state != incarnation
    }
  }
}
