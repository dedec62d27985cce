import WatershedSQLite

/// The parts of a lightweight migration that can be deferred: indexes that only speed up fetches,
/// and the removal of the old tables.
enum DeferredWork {
  static let oldTablePrefix = "_T_"

  /// A unique index enforces a constraint, and a spatial tree has triggers; neither can be
  /// deferred.
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
  /// Completes the deferred parts of a migration in one transaction.
  func finishDeferredMigration() throws {
    let key = NSPersistentStoreDeferredLightweightMigrationOptionKey
    guard metadata[key] != nil, !isReadOnly else { return }
    try inTransaction { try DeferredWork.finish(schema, $0.connection) }
    metadata[key] = nil
  }
}

extension NSPersistentStoreCoordinator {
  /// Completes the deferred parts of the stores' lightweight migrations.
  ///
  /// A store with deferred parts has a value for
  /// `NSPersistentStoreDeferredLightweightMigrationOptionKey` in its metadata. Other connections
  /// wait until the call returns.
  public func finishDeferredLightweightMigration() throws {
    for store in persistentStores {
      do {
        try (store as? SQLiteStore)?.finishDeferredMigration()
      } catch {
        throw CoreDataError.facade(error)
      }
    }
  }

  /// Completes the deferred parts of the stores' lightweight migrations, within a background task.
  ///
  /// **Differs from Core Data:** everything is done in one call.
  public func finishDeferredLightweightMigrationTask() throws {
    try finishDeferredLightweightMigration()
  }
}
