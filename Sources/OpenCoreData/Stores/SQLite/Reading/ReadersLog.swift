import Effects
import Foundation
import WatershedSQLite

/// The empty write-ahead log that a read-only store leaves beside its file.
///
/// SQLite creates an empty log and its index for the first reader of a file in WAL mode. The last
/// writing connection removes both when it is closed; a connection that only reads cannot
/// (sqlite.org/wal.html, "Read-Only Databases").
struct ReadersLog {
  private let path: String

  /// Returns nil if a log exists already, because its writer removes it, or if the file system
  /// cannot report whether one exists.
  init?(of url: URL) {
    path = url.path
    guard (try? FileSystem.isThere(path + "-wal")) == false else { return nil }
  }

  /// Opens and closes the file with a writing connection that writes nothing, so that SQLite
  /// removes the log.
  ///
  /// SQLite removes the log only where no other connection, of this or another process, has the
  /// file open.
  func remove() {
    do {
      guard try FileSystem.look(at: path + "-wal") == .file(size: 0),
        try FileSystem.isWritable(path)
      else { return }
      let connection = try SQLiteConnection(path: path, mode: .readWrite, busyTimeout: 0)
      _ = try connection.scalar("SELECT COUNT(*) FROM sqlite_master")
    } catch {
      StoreLog.warning("The empty log of \(path) was left in place: \(error)")
    }
  }
}
