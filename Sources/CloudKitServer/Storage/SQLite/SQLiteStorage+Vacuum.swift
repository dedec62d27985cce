import Foundation
import WatershedSQLite

extension SQLiteStorage {
  /// Rewrites the database of a stopped server without its free pages; returns the bytes of the file
  /// before and after.
  ///
  /// The caller holds the folder's lock. SQLite writes a copy first, so it needs as much free space
  /// as the file has; after a failure or a crash the database is as before.
  package static func vacuum(_ folder: URL) throws -> (before: Int64, after: Int64) {
    let file = folder.appendingPathComponent(CloudKitService.databaseFileName)
    func size() throws -> Int64 {
      let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
      return (attributes[.size] as? NSNumber)?.int64Value ?? 0
    }
    return try StorageFailure.converting {
      let connection = try SQLiteConnection(path: file.path, mode: .readWrite)
      try StorageFormat.current.check(SQLiteSession(connection: connection))
      // The pages in the log count for the size of the file.
      try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
      let before = try size()
      try connection.execute("VACUUM")
      try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
      return (before, try size())
    }
  }
}
