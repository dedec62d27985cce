import Foundation
import WatershedPostgreSQL

/// Spreads the tables of a PostgreSQL over the machines of a Citus cluster.
///
/// The partition tables are cut by their partition, all alike, so that a partition's rows are on
/// one machine; the directory is copied to each; what is the service's own stays where clients
/// connect. Rows that are there already move along.
package struct StorageDistribution {
  /// What became of a table.
  package struct Outcome: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable {
      case distributed
      case copiedEverywhere = "copied to every machine"
      case local = "kept on the coordinator"
    }

    package var table: String
    package var kind: Kind
    /// It was so before.
    package var isUnchanged: Bool
  }

  /// Why the tables cannot be spread.
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

  /// Does what is not done yet, and tells of every table.
  package func run() throws -> [Outcome] {
    try check()
    let copied = try StorageTables.directory.map { table in
      let isUnchanged = try isKnown(table)
      if !isUnchanged {
        try connection.execute("SELECT create_reference_table('\(table.name)')")
      }
      return Outcome(table: table.name, kind: .copiedEverywhere, isUnchanged: isUnchanged)
    }
    let first = StorageTables.databases.name
    let distributed = try StorageTables.partitioned.map { table in
      let isUnchanged = try isKnown(table)
      if !isUnchanged {
        let neighbour = table.name == first ? "none" : first
        try connection.execute(
          """
          SELECT create_distributed_table('\(table.name)', 'partition',
            colocate_with => '\(neighbour)')
          """
        )
      }
      return Outcome(table: table.name, kind: .distributed, isUnchanged: isUnchanged)
    }
    let local = StorageTables.local.map {
      Outcome(table: $0.name, kind: .local, isUnchanged: true)
    }
    return distributed + copied + local
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
