import CloudKitWebServices
import Foundation

/// A container's API token; only its digest is kept.
package struct StoredAPIToken: Hashable, Sendable {
  package var digest: String
  /// The first characters of the token, by which administrators identify it.
  package var prefix: String
  /// The token itself, sealed with a key that is not in the database; only for tokens that the
  /// server created for its own banner and commands.
  package var sealed: Data?
  package var scope: APITokenScope
  package var environment: ContainerEnvironment
  /// Empty: pages of the server itself and, in development, of this machine.
  package var allowedOrigins: [String]
  package var redirectURL: String?
}

extension StoredAPIToken: TableRow {
  enum Column: Int, CaseIterable {
    case digest, container, environment, allowedOrigins, redirectURL, prefix, sealed
  }

  static var table: StorageTable { StorageTables.apiTokens }
  static let select: String = selection

  static func definition(of column: Column) -> StorageTable.Column {
    switch column {
    // The column's name is that of the versions that stored the token itself.
    case .digest: .text("token")
    case .container: .text("container").optional
    case .environment: .text("environment")
    case .allowedOrigins: .text("allowed_origins")
    case .redirectURL: .text("redirect_url").optional
    case .prefix: .text("prefix").optional
    case .sealed: .bytes("sealed").optional
    }
  }

  init(_ row: ColumnReader<some SQLRow, Column>) throws {
    let origins = Data(row.text(.allowedOrigins).utf8)
    self.init(
      digest: row.text(.digest),
      prefix: row.text(.prefix),
      sealed: row.optionalBlob(.sealed),
      scope: APITokenScope(column: row.optionalText(.container)),
      environment: ContainerEnvironment(rawValue: row.text(.environment)) ?? .development,
      allowedOrigins: try JSONDecoder().decode([String].self, from: origins),
      redirectURL: row.optionalText(.redirectURL)
    )
  }

  func value(of column: Column) throws -> SQLValue {
    switch column {
    case .digest: .text(digest)
    case .container: .optional(scope.column)
    case .environment: .text(environment.rawValue)
    case .allowedOrigins:
      .text(String(decoding: try JSONEncoder().encode(allowedOrigins), as: UTF8.self))
    case .redirectURL: .optional(redirectURL)
    case .prefix: .text(prefix)
    case .sealed: .optional(sealed)
    }
  }
}
