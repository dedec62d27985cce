import CloudKitWebServices

/// The unit of scale: the database of one user.
package struct PartitionKey: Hashable, Sendable {
  package var container: String
  package var environment: ContainerEnvironment
  package var scope: DatabaseScope
  /// The owner's user record name; empty for the public database.
  package var owner: String

  package init(
    container: String,
    environment: ContainerEnvironment,
    scope: DatabaseScope,
    owner: String
  ) {
    self.container = container
    self.environment = environment
    self.scope = scope
    self.owner = scope == .public ? "" : owner
  }
}

/// The short form of a partition key: the column that leads every key of the partition tables.
package struct PartitionID: Hashable, Sendable, Codable {
  package var rawValue: Int64

  package init(rawValue: Int64) { self.rawValue = rawValue }

  /// Has no rows: created partitions have odd numbers.
  package static let empty = PartitionID(rawValue: 0)
}

/// A position in the order of a private database's changes.
package struct ChangeNumber: Hashable, Sendable, Comparable, Codable {
  package var rawValue: Int64

  package init(_ rawValue: Int64) { self.rawValue = rawValue }

  package static let zero = ChangeNumber(0)

  package static func < (left: ChangeNumber, right: ChangeNumber) -> Bool {
    left.rawValue < right.rawValue
  }

  package var next: ChangeNumber { ChangeNumber(rawValue + 1) }
}

/// A zone within its partition: the change number of its creation, so a recreated zone has another
/// number.
package struct ZoneNumber: Hashable, Sendable, Codable {
  package var rawValue: Int64

  package init(_ rawValue: Int64) { self.rawValue = rawValue }

  /// The default zone, which every database has.
  package static let defaultZone = ZoneNumber(0)
}
