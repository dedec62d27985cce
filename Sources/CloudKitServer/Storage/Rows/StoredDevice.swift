import CloudKitWebServices

/// A registered device or page that receives notifications.
package struct StoredDevice: Hashable, Sendable {
  /// The digest of its token, which identifies it in the storage and in memory.
  ///
  /// A row of an earlier version contains the token itself, and no request finds it.
  package var token: String
  package var container: String
  package var environment: ContainerEnvironment
  package var userRecordName: String?
  package var clientID: String?
}

extension StoredDevice: TableRow {
  enum Column: Int, CaseIterable { case token, container, environment, userRecord, clientID }

  static var table: StorageTable { StorageTables.devices }
  static let select: String = selection

  static func definition(of column: Column) -> StorageTable.Column {
    switch column {
    case .token: .text("token")
    case .container: .text("container")
    case .environment: .text("environment")
    case .userRecord: .text("user_record").optional
    case .clientID: .text("client_id").optional
    }
  }

  init(_ row: ColumnReader<some SQLRow, Column>) {
    self.init(
      token: row.text(.token),
      container: row.text(.container),
      environment: ContainerEnvironment(rawValue: row.text(.environment)) ?? .development,
      userRecordName: row.optionalText(.userRecord),
      clientID: row.optionalText(.clientID)
    )
  }

  func value(of column: Column) -> SQLValue {
    switch column {
    case .token: .text(token)
    case .container: .text(container)
    case .environment: .text(environment.rawValue)
    case .userRecord: .optional(userRecordName)
    case .clientID: .optional(clientID)
    }
  }
}
