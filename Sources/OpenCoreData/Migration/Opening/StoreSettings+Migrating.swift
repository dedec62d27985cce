import Foundation
import WatershedSQLite

extension StoreSettings {
  /// The connection that migrates a store's file.
  func migratingConnection(to url: URL) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(
      path: url.path,
      mode: .readWrite,
      busyTimeout: busyTimeout
    )
    try apply(to: connection, isWriter: true)
    // Renaming a table must not parse the triggers of others, whose functions are not registered
    // here.
    try connection.execute("PRAGMA legacy_alter_table = ON")
    return connection
  }
}
