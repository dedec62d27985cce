import WatershedPostgreSQL

extension PostgreSQLStorage {
  /// Checks the tables at a URL without changing them, and reads their fingerprints of keys and
  /// assets.
  static func inspect(_ url: String) throws -> StorageFingerprints {
    let pool = PostgreSQLPool(url: url)
    defer { pool.close() }
    return try pool.use { connection in
      try connection.transaction(.snapshot) {
        let session = PostgreSQLSession(connection: connection)
        try StorageFormat.current.check(session)
        return try ServiceFacts(session: session).fingerprints
      }
    }
  }

  static let notEmpty = BackupError(
    description: "The database is not empty; a backup goes into a new one."
  )

  /// Whether the tables at a URL, if there are any, have no rows.
  static func isEmpty(_ url: String) throws -> Bool {
    guard try hasTables(url) else { return true }
    let pool = PostgreSQLPool(url: url)
    defer { pool.close() }
    return try pool.use { connection in
      let session = PostgreSQLSession(connection: connection)
      return try TableCopy(source: session, target: session).isTargetEmpty()
    }
  }

  /// Whether there are tables of a server at a URL.
  static func hasTables(_ url: String) throws -> Bool {
    let pool = PostgreSQLPool(url: url)
    defer { pool.close() }
    return try pool.use {
      try $0.query("SELECT 1 WHERE to_regclass('service') IS NOT NULL").count > 0
    }
  }
}
