/// A signed-in session; only the digest of its token is kept.
package struct StoredSession: Hashable, Sendable {
  package var digest: String
  package var container: String
  package var account: String
  package var userRecordName: String
  /// Milliseconds since 1970.
  package var expires: Int64
  package var isKept: Bool
}

extension StoredSession: TableRow {
  enum Column: Int, CaseIterable { case digest, container, account, userRecord, expires, isKept }

  static var table: StorageTable { StorageTables.sessions }
  static let select: String = selection

  static func definition(of column: Column) -> StorageTable.Column {
    switch column {
    case .digest: .text("digest")
    case .container: .text("container")
    case .account: .text("account")
    case .userRecord: .text("user_record")
    case .expires: .integer("expires")
    case .isKept: .integer("kept")
    }
  }

  init(_ row: ColumnReader<some SQLRow, Column>) {
    self.init(
      digest: row.text(.digest),
      container: row.text(.container),
      account: row.text(.account),
      userRecordName: row.text(.userRecord),
      expires: row.int64(.expires),
      isKept: row.int64(.isKept) != 0
    )
  }

  func value(of column: Column) -> SQLValue {
    switch column {
    case .digest: .text(digest)
    case .container: .text(container)
    case .account: .text(account)
    case .userRecord: .text(userRecordName)
    case .expires: .integer(expires)
    case .isKept: .integer(isKept ? 1 : 0)
    }
  }
}
