import Effects
import Foundation
import WatershedSQLite

/// Moves a complete copy of a store, which was written beside a path, to that path.
///
/// If a store is at the path, its contents are replaced in one transaction on its own file, under
/// the file's exclusive lock: renaming another file over it would leave a process that opens it at
/// that moment with an unlinked file and the log of the other. If none is there, or it cannot be
/// read, the copy is renamed to the path. In both cases a crash leaves either the old store or the
/// new one.
struct StoreInstallation {
  /// The copy, which no connection has open.
  let draft: URL
  /// The file itself, not a link to it.
  let place: URL
  /// Whether to replace a file that cannot be read or is in use.
  let isForced: Bool
  /// How long to wait for another connection's lock, in seconds.
  let timeout: Double

  /// `willReplace` is called before the first call that may have replaced the store even if it
  /// fails.
  func run(willReplace: () -> Void) throws {
    switch try FileSystem.look(at: place.path) {
    case .missing:
      // A log without its store would be read into the file that is renamed to the path.
      try StorePlace.removeLog(of: place)
      willReplace()
      try FileSystem.move(draft.path, toFree: place.path)
    case .file(let size) where size > 0:
      if try !replaceContents(willReplace) { try takePlace(willReplace) }
    default:
      try takePlace(willReplace)
    }
  }

  private func takePlace(_ willReplace: () -> Void) throws {
    try StorePlace.removeLog(of: place)
    willReplace()
    try FileSystem.move(draft.path, over: place.path)
  }

  /// Replaces the contents if the file can be opened as a database; returns false, with the file
  /// unchanged, if not.
  private func replaceContents(_ willReplace: () -> Void) throws -> Bool {
    do {
      let connection = try SQLiteConnection(path: place.path, mode: .alone, busyTimeout: timeout)
      // From here the lock is held until the connection is closed.
      try connection.transaction(.exclusive) {}
      let source = try SQLiteConnection(path: draft.path, mode: .readOnly)
      // All pages of a log have one size.
      guard try Self.pageSize(connection) == Self.pageSize(source) else {
        _ = try connection.scalar("PRAGMA wal_checkpoint(TRUNCATE)")
        try requireNoLog()
        return false
      }
      willReplace()
      try connection.replaceContents(by: source)
      // A log that remains is read by the next connection.
      _ = try? connection.scalar("PRAGMA wal_checkpoint(TRUNCATE)")
      return true
    } catch let error as SQLiteError where isForced && (error.isNotADatabase || error.isBusy) {
      return false
    } catch let error as SQLiteError where error.isReadOnly {
      // SQLite returns this error for a full disk too, if it cannot create the log. Commits in an
      // existing log are nowhere else: if renaming the copy failed afterwards, the old store would
      // lack them.
      guard try hasLog else { return false }
      throw error
    }
  }

  private var hasLog: Bool {
    get throws {
      try ["-wal", "-journal"].contains { try FileSystem.size(of: place.path + $0) > 0 }
    }
  }

  private func requireNoLog() throws {
    guard try hasLog else { return }
    throw StoreError(
      .fileWriteUnknown,
      "The log of the store at \(place.path) could not be brought into its file.",
      remedy: "Check the disk, and try again.",
      context: [NSFilePathErrorKey: place.path]
    )
  }

  private static func pageSize(_ connection: SQLiteConnection) throws -> SQLiteValue? {
    try connection.scalar("PRAGMA page_size")
  }
}
