extension StorageFormat {
  /// API tokens become digests, so that a copy of the database gives no access to an app; tokens
  /// that earlier versions left behind are deleted.
  ///
  /// Older servers look up tokens as they are sent and would refuse every app, so they do not start
  /// with these tables. Keeping the tokens for them beside the digests would have kept the
  /// weakness.
  static let seventhVersion = Step(
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
    let columns = [
      ("prefix", session.dialect.type(of: .text)), ("sealed", session.dialect.type(of: .bytes)),
    ]
    switch session.dialect {
    case .sqlite:
      // The second step creates the table with these columns, from the same list of tables.
      let known = try session.query("SELECT name FROM pragma_table_info('api_tokens')", []) {
        $0.text(0)
      }
      for (name, type) in columns where !known.contains(name) {
        try session.run("ALTER TABLE api_tokens ADD COLUMN \(name) \(type)", [])
      }
    case .postgreSQL:
      for (name, type) in columns {
        try session.run("ALTER TABLE api_tokens ADD COLUMN IF NOT EXISTS \(name) \(type)", [])
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
        [
          .text(TokenDigest.of(token)), .text(StoredAPIToken.prefix(of: token)),
          .text(token),
        ]
      }
    )
    if erasing { _ = try session.query("PRAGMA secure_delete = OFF", []) { _ in } }
  }
}

extension StoredAPIToken {
  /// The number of characters of a token that are kept: a few of 64, which identify it but give no
  /// access.
  static func prefix(of token: String) -> String { String(token.prefix(8)) }
}
