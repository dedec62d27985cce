import CloudKitWebServices
import Crypto
import Foundation

extension StorageFormat {
  /// Version 7: API tokens become digests, so that a copy of the database gives no access to an app; tokens
  /// that earlier versions left behind are deleted.
  ///
  /// Older servers look up tokens as they are sent and would refuse every app, so they do not start
  /// with these tables. Keeping the tokens for them beside the digests would have kept the
  /// weakness.
  static let tokenDigests = Step(
    version: 7,
    oldestServer: 7,
    statements: { _ in
      [
        // Devices of versions without digests, whose rows contain the tokens; no request finds
        // them.
        """
        DELETE FROM devices WHERE NOT EXISTS (
          SELECT 1 FROM directory_entries
          WHERE kind = 'device-binding' AND name = devices.token
        )
        """,
        // They contain an API token, and are valid for ten minutes.
        "DELETE FROM directory_entries WHERE kind = 'device-code'",
      ]
    },
    convert: { try digestAPITokens($0) }
  )

  private static func digestAPITokens(_ session: some SQLSession) throws {
    switch session.dialect {
    case .sqlite:
      // Earlier servers created the table with these columns in the second step.
      let known = try session.query("SELECT name FROM pragma_table_info('api_tokens')", []) {
        $0.text(0)
      }
      for column in ["prefix TEXT", "sealed BLOB"]
      where !known.contains(String(column.prefix { $0 != " " })) {
        try session.run("ALTER TABLE api_tokens ADD COLUMN \(column)", [])
      }
    case .postgreSQL:
      for column in ["prefix text COLLATE \"C\"", "sealed bytea"] {
        try session.run("ALTER TABLE api_tokens ADD COLUMN IF NOT EXISTS \(column)", [])
      }
    }
    // Otherwise SQLite leaves the bytes of deleted rows in the file. PostgreSQL removes them when
    // it vacuums the table.
    let erasing = session.dialect == .sqlite
    if erasing { _ = try session.query("PRAGMA secure_delete = ON", []) { _ in } }
    let tokens = try session.query("SELECT token FROM api_tokens", []) { $0.text(0) }
    try session.run(
      "UPDATE api_tokens SET token = $1, prefix = $2 WHERE token = $3",
      each: tokens.map { token in
        // Literal, as the seventh version did it: later digests and prefixes may differ.
        let digest = Data(SHA256.hash(data: Data(token.utf8))).hexadecimal
        return [.text(digest), .text(String(token.prefix(8))), .text(token)]
      }
    )
    if erasing { _ = try session.query("PRAGMA secure_delete = OFF", []) { _ in } }
  }
}
