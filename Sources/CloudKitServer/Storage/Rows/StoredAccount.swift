import Foundation

/// An account that may sign in.
package struct StoredAccount: Hashable, Sendable {
  package var id: String
  package var userName: String
  package var passwordSalt: Data
  package var passwordHash: Data
  package var passwordRounds: Int
  package var givenName: String?
  package var familyName: String?
  package var emailAddress: String?
}

extension StoredAccount: TableRow {
  enum Column: Int, CaseIterable {
    case id, userName, foldedName, passwordSalt, passwordHash, passwordRounds
    case givenName, familyName, emailAddress
  }

  static var table: StorageTable { StorageTables.accounts }
  static let select: String = selection

  static func definition(of column: Column) -> StorageTable.Column {
    switch column {
    case .id: .text("id")
    case .userName: .text("user_name")
    case .foldedName: .text("folded_name")
    case .passwordSalt: .bytes("password_salt")
    case .passwordHash: .bytes("password_hash")
    case .passwordRounds: .integer("password_rounds")
    case .givenName: .text("given_name").optional
    case .familyName: .text("family_name").optional
    case .emailAddress: .text("email_address").optional
    }
  }

  init(_ row: ColumnReader<some SQLRow, Column>) {
    self.init(
      id: row.text(.id),
      userName: row.text(.userName),
      passwordSalt: row.blob(.passwordSalt),
      passwordHash: row.blob(.passwordHash),
      passwordRounds: Int(row.int64(.passwordRounds)),
      givenName: row.optionalText(.givenName),
      familyName: row.optionalText(.familyName),
      emailAddress: row.optionalText(.emailAddress)
    )
  }

  func value(of column: Column) -> SQLValue {
    switch column {
    case .id: .text(id)
    case .userName: .text(userName)
    case .foldedName: .text(foldedName)
    case .passwordSalt: .bytes(passwordSalt)
    case .passwordHash: .bytes(passwordHash)
    case .passwordRounds: .integer(Int64(passwordRounds))
    case .givenName: .optional(givenName)
    case .familyName: .optional(familyName)
    case .emailAddress: .optional(emailAddress)
    }
  }
}
