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

  /// Whether there are tables of a server at a URL.
  static func hasTables(_ url: String) throws -> Bool {
    let pool = PostgreSQLPool(url: url)
    defer { pool.close() }
    return try pool.use {
      try $0.query("SELECT 1 WHERE to_regclass('service') IS NOT NULL").count > 0
    }
  }
}
