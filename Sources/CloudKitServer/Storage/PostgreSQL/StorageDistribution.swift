import Foundation
import WatershedPostgreSQL

/// Distributes the tables of a PostgreSQL over the machines of a Citus cluster.
///
/// The partition tables are distributed by their partition, so that a partition's rows are on one
/// machine; the directory is replicated to each; the service's own tables stay on the coordinator.
/// Existing rows are moved, without leaving copies behind.
package struct StorageDistribution {
  /// The outcome for a table.
  package struct Outcome: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable {
      case distributed
      case copiedEverywhere = "copied to every machine"
      case local = "kept on the coordinator"
    }

    package var table: String
    package var kind: Kind
    /// Whether the table was distributed before.
    package var isUnchanged: Bool
  }

  /// The reason why the tables can't be distributed.
  package enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
    case notInstalled
    case notCreated
    case noTables

    package var description: String {
      switch self {
      case .notInstalled:
        "This PostgreSQL has no Citus extension. Install Citus on the coordinator and on every "
          + "worker (docs.citusdata.com), and run this again."
      case .notCreated:
        "Citus is installed and not switched on in this database. Run CREATE EXTENSION citus and "
          + "add the workers with citus_add_node, and run this again."
      case .noTables:
        "This database has no tables of a server yet. Start a server with it once, and run this "
          + "again."
      }
    }
  }

  private let connection: PostgreSQLConnection

  package init(url: String) throws {
    connection = try PostgreSQLConnection(url: url)
  }

  /// Distributes the tables that are not distributed yet, and returns the outcome of each table.
  ///
  /// Run it again after a newer server has created another table; until then that table is on the
  /// coordinator, and everything works.
  package func run() throws -> [Outcome] {
    try check()
    try connection.execute(Self.waiting)
    return try StorageTables.all.map { table in
      let statement = Self.statement(for: table)
      let isUnchanged = try statement == nil || isKnown(table)
      if let statement {
        if !isUnchanged { try connection.execute(statement) }
        try connection.execute(Self.clearing(table))
      }
      return Outcome(table: table.name, kind: Outcome.Kind(table.family), isUnchanged: isUnchanged)
    }
  }

  /// The coordinator waits for its workers and not for the locks that they wait for, so the workers
  /// need the lock timeout: Citus passes a role's settings on.
  static let waiting =
    "ALTER ROLE CURRENT_USER SET lock_timeout = \(PostgreSQLPool.lockTimeout)"

  /// Nil for tables that stay on the coordinator.
  static func statement(for table: StorageTable) -> String? {
    let first = StorageTables.databases.name
    return switch table.family {
    case .local: nil
    case .directory: "SELECT create_reference_table('\(table.name)')"
    case .partition:
      """
      SELECT create_distributed_table('\(table.name)', 'partition',
        colocate_with => '\(table.name == first ? "none" : first)')
      """
    }
  }

  /// Otherwise the copied rows remain on the coordinator's disk, where no statement reaches them:
  /// they would survive the deletion of accounts, and prevent a later unique index.
  static func clearing(_ table: StorageTable) -> String {
    "SELECT truncate_local_data_after_distributing_table('\(table.name)')"
  }

  private func check() throws {
    func isThere(_ sql: String) throws -> Bool { try connection.query(sql).count > 0 }
    guard try isThere("SELECT 1 FROM pg_extension WHERE extname = 'citus'") else {
      let isInstalled = try isThere(
        "SELECT 1 FROM pg_available_extensions WHERE name = 'citus'"
      )
      throw isInstalled ? Failure.notCreated : Failure.notInstalled
    }
    for table in StorageTables.all {
      guard try isThere("SELECT 1 WHERE to_regclass('\(table.name)') IS NOT NULL") else {
        throw Failure.noTables
      }
    }
  }

  private func isKnown(_ table: StorageTable) throws -> Bool {
    try connection.query(
      "SELECT 1 FROM pg_dist_partition WHERE logicalrelid = '\(table.name)'::regclass"
    ).count > 0
  }
}

extension StorageDistribution.Outcome.Kind {
  fileprivate init(_ family: StorageTable.Family) {
    self =
      switch family {
      case .partition: .distributed
      case .directory: .copiedEverywhere
      case .local: .local
      }
  }
}
