import Foundation
import Synchronization

/// Assets of a server that keeps nothing.
package final class MemoryAssetStore: AssetStore {
  private let files = Mutex<[String: Data]>([:])

  package init() {}

  private func key(_ partition: PartitionID, _ digest: String) -> String {
    "\(partition.rawValue)/\(digest)"
  }

  package func write(_ data: Data, _ partition: PartitionID, _ digest: String) throws {
    files.withLock { $0[key(partition, digest)] = data }
  }

  package func read(_ partition: PartitionID, _ digest: String) throws -> Data? {
    files.withLock { $0[key(partition, digest)] }
  }

  package func contains(_ partition: PartitionID, _ digest: String) -> Bool {
    files.withLock { $0[key(partition, digest)] != nil }
  }

  /// Nothing is ever left over from an earlier run.
  package func sweep(keeping used: Set<String>, olderThan date: Date) throws {}
}
