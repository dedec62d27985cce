/// An account's user in one container: the record name differs between containers.
package struct StoredUser: Hashable, Sendable {
  package var container: String
  package var account: String
  package var recordName: String
}

extension StoredUser: TableRow {
  enum Column: Int, CaseIterable { case container, account, recordName }

  static var table: StorageTable { StorageTables.users }
  static let select: String = selection

  static func definition(of column: Column) -> StorageTable.Column {
    switch column {
    case .container: .text("container")
    case .account: .text("account")
    case .recordName: .text("record_name")
    }
  }

  init(_ row: ColumnReader<some SQLRow, Column>) {
    self.init(
      container: row.text(.container),
      account: row.text(.account),
      recordName: row.text(.recordName)
    )
  }

  func value(of column: Column) -> SQLValue {
    switch column {
    case .container: .text(container)
    case .account: .text(account)
    case .recordName: .text(recordName)
    }
  }
}
