import WatershedSQLite

/// What a lightweight migration may put off: indexes that only make fetches faster, and the removal
/// of the old tables.
enum DeferredWork {
  static let oldTablePrefix = "_T_"

  /// A unique index is a promise, and a tree has triggers; both cannot wait.
  static func canWait(_ statement: String) -> Bool { statement.hasPrefix("CREATE INDEX") }

  static func finish(_ schema: StoreSchema, _ connection: SQLiteConnection) throws {
    try dropOldTables(connection)
    let present = try connection.query(
      "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    ) { IndexMigration.normalized($0.text(0)) }
    let known = Set(present)
    for statement in IndexMigration.statements(of: schema)
    where canWait(statement) && !known.contains(IndexMigration.normalized(statement)) {
      try connection.execute(statement)
    }
  }

  static func dropOldTables(_ connection: SQLiteConnection) throws {
    let tables = try connection.query(
      "SELECT name FROM sqlite_master WHERE type = 'table' "
        + "AND name LIKE '\\_T\\_%' ESCAPE '\\' ORDER BY name"
    ) { $0.text(0) }
    for table in tables { try connection.execute("DROP TABLE \"\(table)\"") }
  }

  static func dropIndexes(of table: String, _ connection: SQLiteConnection) throws {
    let indexes = try connection.query(
      "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
      [.text(table)]
    ) { $0.text(0) }
    for index in indexes { try connection.execute("DROP INDEX \"\(index)\"") }
  }
}

extension SQLiteStore {
  /// Does what a migration put off, in one transaction.
  func finishDeferredMigration() throws {
    let key = NSPersistentStoreDeferredLightweightMigrationOptionKey
    guard metadata[key] != nil, !isReadOnly else { return }
    try inTransaction { try DeferredWork.finish(schema, $0.connection) }
    metadata[key] = nil
  }
}

extension NSPersistentStoreCoordinator {
  /// Does what the lightweight migrations of the stores have put off.
  ///
  /// A store whose metadata has a value for `NSPersistentStoreDeferredLightweightMigrationOptionKey`
  /// has something to do. Other connections wait while it is done.
  public func finishDeferredLightweightMigration() throws {
    for store in persistentStores {
      do {
        try (store as? SQLiteStore)?.finishDeferredMigration()
      } catch {
        throw CoreDataError.facade(error)
      }
    }
  }

  /// Does what the lightweight migrations of the stores have put off, within a background task.
  ///
  /// **Differs from Core Data:** everything is done in one call.
  public func finishDeferredLightweightMigrationTask() throws {
    try finishDeferredLightweightMigration()
  }
}
