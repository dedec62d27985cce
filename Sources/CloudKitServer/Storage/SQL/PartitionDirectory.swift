import CloudKitWebServices
import Effects
import Foundation

/// Looks up and creates partitions.
struct PartitionDirectory<Session: SQLSession> {
  let session: Session

  private func columns(_ key: PartitionKey) -> [SQLValue] {
    [
      .text(key.container), .text(key.environment.rawValue), .text(key.scope.rawValue),
      .text(key.owner),
    ]
  }

  func find(_ key: PartitionKey) throws -> PartitionID? {
    try session.query(
      """
      SELECT partition FROM partitions
      WHERE container = $1 AND environment = $2 AND scope = $3 AND owner = $4
      """,
      columns(key)
    ) { PartitionID(rawValue: $0.int64(0)) }.first
  }

  /// Creates a partition, or finds the one that another server created meanwhile; throws for a
  /// container that is being deleted, or was and is not opened again.
  func make(_ key: PartitionKey, _ randomness: any RandomSource) throws -> PartitionID? {
    guard try ContainerGate(session: session).state(of: key.container) == .open else {
      throw ContainerGate<Session>.refusal
    }
    // Random, because a sequence would be one row that all servers lock; 47 bits take six bytes in
    // an SQLite row.
    let number = Int64(randomness.next() >> 17) | 1
    try session.insert(
      into: StorageTables.partitions,
      .ignored,
      [[.integer(number)] + columns(key)]
    )
    guard let id = try find(key) else { return nil }
    try session.insert(
      into: StorageTables.databases,
      .ignored,
      [[.integer(id.rawValue), .integer(0), .integer(0)]]
    )
    return id
  }
}
