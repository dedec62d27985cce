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
    // The files of large values that only the former rows name are removed after the commit. It has to be on the disk
    // by then: a power failure would leave those rows without their files.
    try connection.execute("PRAGMA synchronous = FULL")
    // Renaming a table must not parse the triggers of others, whose functions are not registered
    // here.
    try connection.execute("PRAGMA legacy_alter_table = ON")
    return connection
  }
}
