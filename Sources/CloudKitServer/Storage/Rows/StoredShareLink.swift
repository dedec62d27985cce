import CloudKitWebServices

/// The location of a share in which a user participates or participated.
///
/// It is a hint and grants nothing: the permissions are read from the owner's database each time.
package struct StoredShareLink: Hashable, Sendable {
  package var container: String
  package var environment: ContainerEnvironment
  package var user: String
  /// The owner's database.
  package var partition: PartitionID
  package var owner: String
  package var zone: ZoneNumber
  package var zoneName: String
  package var share: String
}

extension StoredShareLink: TableRow {
  enum Column: Int, CaseIterable {
    case container, environment, user, partition, zone, share, owner, zoneName
  }

  static var table: StorageTable { StorageTables.shareLinks }
  static let select: String = selection

  static func definition(of column: Column) -> StorageTable.Column {
    switch column {
    case .container: .text("container")
    case .environment: .text("environment")
    case .user: .text("user_record")
    case .partition: .integer("partition")
    case .zone: .integer("zone")
    case .share: .text("share")
    case .owner: .text("owner")
    case .zoneName: .text("zone_name")
    }
  }

  init(_ row: ColumnReader<some SQLRow, Column>) {
    self.init(
      container: row.text(.container),
      environment: ContainerEnvironment(rawValue: row.text(.environment)) ?? .development,
      user: row.text(.user),
      partition: PartitionID(rawValue: row.int64(.partition)),
      owner: row.text(.owner),
      zone: ZoneNumber(row.int64(.zone)),
      zoneName: row.text(.zoneName),
      share: row.text(.share)
    )
  }

  func value(of column: Column) -> SQLValue {
    switch column {
    case .container: .text(container)
    case .environment: .text(environment.rawValue)
    case .user: .text(user)
    case .partition: .integer(partition.rawValue)
    case .zone: .integer(zone.rawValue)
    case .share: .text(share)
    case .owner: .text(owner)
    case .zoneName: .text(zoneName)
    }
  }
}
