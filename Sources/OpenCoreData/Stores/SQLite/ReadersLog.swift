import Foundation
import WatershedSQLite

/// The log that a store which is only read leaves behind.
///
/// SQLite makes an empty log and its index for the first reader of a file in WAL mode. The last writing
/// connection removes both when it is closed; a connection that only reads cannot
/// (sqlite.org/wal.html, "Read-Only Databases").
struct ReadersLog {
  private let path: String

  /// Nil where there is a log already: that one belongs to its writer.
  init?(of url: URL) {
    path = url.path
    if FileManager.default.fileExists(atPath: path + "-wal") { return nil }
  }

  /// Lets a writing connection, which writes nothing, close the file.
  ///
  /// SQLite removes the log only where no other connection of any process has the file open.
  func remove() {
    do {
      guard FileManager.default.fileExists(atPath: path + "-wal"),
        try StoreFile.size(path + "-wal") == 0, FileManager.default.isWritableFile(atPath: path)
      else { return }
      let connection = try SQLiteConnection(path: path, mode: .readWrite, busyTimeout: 0)
      _ = try connection.scalar("SELECT COUNT(*) FROM sqlite_master")
    } catch {
      StoreLog.warning("The empty log of \(path) was left in place: \(error)")
    }
  }
}
