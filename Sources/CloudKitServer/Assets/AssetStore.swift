import Foundation

/// Keeps the bytes of assets, by partition and digest.
package protocol AssetStore: Sendable {
  func write(_ data: Data, _ partition: PartitionID, _ digest: String) throws
  func read(_ partition: PartitionID, _ digest: String) throws -> Data?
  func contains(_ partition: PartitionID, _ digest: String) -> Bool
  /// Removes what no record uses; `used` holds `partition/digest`. Only at a start, when no upload
  /// can be on its way to a record.
  func sweep(keeping used: Set<String>) throws
}
