import CloudKitWebServices

/// The target of a short ID; stable for its root, whether or not the root is shared now.
package struct StoredShortGUID: Hashable, Sendable {
  package var guid: String
  package var container: String
  package var environment: ContainerEnvironment
  package var partition: PartitionID
  package var owner: String
  package var zone: ZoneNumber
  package var zoneName: String
  /// The root; the share itself if a whole zone is shared.
  package var recordName: String
}

extension StoredShortGUID: TableRow {
  enum Column: Int, CaseIterable {
    case guid, container, environment, partition, owner, zone, zoneName, record
  }

  static var table: StorageTable { StorageTables.shortGUIDs }
  static let select: String = selection

  static func definition(of column: Column) -> StorageTable.Column {
    switch column {
    case .guid: .text("guid")
    case .container: .text("container")
    case .environment: .text("environment")
    case .partition: .integer("partition")
    case .owner: .text("owner")
    case .zone: .integer("zone")
    case .zoneName: .text("zone_name")
    case .record: .text("record")
    }
  }

  init(_ row: ColumnReader<some SQLRow, Column>) {
    self.init(
      guid: row.text(.guid),
      container: row.text(.container),
      environment: ContainerEnvironment(rawValue: row.text(.environment)) ?? .development,
      partition: PartitionID(rawValue: row.int64(.partition)),
      owner: row.text(.owner),
      zone: ZoneNumber(row.int64(.zone)),
      zoneName: row.text(.zoneName),
      recordName: row.text(.record)
    )
  }

  func value(of column: Column) -> SQLValue {
    switch column {
    case .guid: .text(guid)
    case .container: .text(container)
    case .environment: .text(environment.rawValue)
    case .partition: .integer(partition.rawValue)
    case .owner: .text(owner)
    case .zone: .integer(zone.rawValue)
    case .zoneName: .text(zoneName)
    case .record: .text(recordName)
    }
  }
}
