import Effects
import Foundation
import WatershedSQLite

/// A complete copy of a store at another URL, including the pages that are only in the WAL, and the
/// files of external values.
enum StoreCopy {
  static func copy(_ source: URL, to copy: URL, effects: Effects) throws {
    let connection = try SQLiteConnection(path: source.path, mode: .readOnly)
    // A reader of this state or an earlier one keeps writers from removing files that the copy needs.
    // The log of a crashed process, which has no writers, is read by one connection alone.
    let reader =
      try StorePlace.hasUnreadLog(at: source)
      ? nil : SQLiteConnection(path: source.path, mode: .readOnly)
    try reading(reader) {
      // Reads one snapshot, regardless of concurrent writes (sqlite.org/lang_vacuum.html).
      try connection.run("VACUUM INTO ?", [.text(copy.path)])
      do {
        try copyExternalData(from: source, to: copy, effects: effects)
      } catch {
        StorePlace.discardFile(at: copy)
        throw error
      }
    }
  }

  /// Runs the body while the connection reads the present state.
  private static func reading(_ reader: SQLiteConnection?, _ body: () throws -> Void) throws {
    guard let reader else { return try body() }
    try reader.transaction(.deferred) {
      _ = try reader.scalar("SELECT COUNT(*) FROM sqlite_master")
      try body()
    }
  }

  /// The files of external values are written once and never changed, so a hard link is enough.
  static func copyExternalData(from source: URL, to copy: URL, effects: Effects) throws {
    let files = try ExternalFiles(store: copy, copy: source, effects: effects)
    do {
      try files.bring(for: copy)
    } catch {
      files.takeBack()
      throw error
    }
  }
}
