import Foundation

/// Keeps the bytes of assets, by partition and digest.
package protocol AssetStore: Sendable {
  func write(_ data: Data, _ partition: PartitionID, _ digest: String) throws
  func read(_ partition: PartitionID, _ digest: String) throws -> Data?
  func contains(_ partition: PartitionID, _ digest: String) -> Bool
  /// Removes what no record uses; `used` holds `partition/digest`.
  ///
  /// A younger file stays: its receipt is good, and a client may be about to save it.
  func sweep(keeping used: Set<String>, olderThan date: Date) throws
}
