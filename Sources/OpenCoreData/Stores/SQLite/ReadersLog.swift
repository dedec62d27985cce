import Effects
import Foundation
import WatershedSQLite

/// The empty log that a read-only store leaves next to its file.
///
/// SQLite makes an empty log and its index for the first reader of a file in WAL mode. The last writing
/// connection removes both when it is closed; a connection that only reads cannot
/// (sqlite.org/wal.html, "Read-Only Databases").
struct ReadersLog {
  private let path: String

  /// Nil if a log exists already, which belongs to its writer, and if the file system does not report
  /// whether one exists.
  init?(of url: URL) {
    path = url.path
    guard (try? FileSystem.isThere(path + "-wal")) == false else { return nil }
  }

  /// Lets a writing connection, which writes nothing, close the file.
  ///
  /// SQLite removes the log only where no other connection of any process has the file open.
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
