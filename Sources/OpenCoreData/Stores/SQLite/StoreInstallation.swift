import Effects
import Foundation
import WatershedSQLite

/// Puts a complete copy of a store, which was made beside a place, into that place.
///
/// Where a store is there, its contents are replaced in one transaction on its own file, under the
/// file's exclusive lock: renaming another file over it would leave a process that opens it at that
/// moment with a file without a name, and with the log of the other. Where none is there, or what is
/// there cannot be read, the copy takes the name. Either way a crash leaves the old store or the new.
struct StoreInstallation {
  /// The copy, which no connection has open.
  let draft: URL
  /// The file itself, not a link to it.
  let place: URL
  /// Whether to replace a file that cannot be read or is in use.
  let isForced: Bool
  /// How long another connection's lock is waited for, in seconds.
  let timeout: Double

  /// `willReplace` is called before the first call after which the copy may have the place, although the
  /// call fails.
  func run(willReplace: () -> Void) throws {
    switch try FileSystem.look(at: place.path) {
    case .missing:
      // A log without its store would be read into the file that takes the place.
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

  /// Whether the file could be opened as a database; false leaves it as it was.
  private func replaceContents(_ willReplace: () -> Void) throws -> Bool {
    do {
      let connection = try SQLiteConnection(path: place.path, mode: .alone, busyTimeout: timeout)
      // With this the lock is held until the connection is closed.
      try connection.transaction(.exclusive) {}
      let source = try SQLiteConnection(path: draft.path, mode: .readOnly)
      // A log holds pages of one size.
      guard try Self.pageSize(connection) == Self.pageSize(source) else {
        _ = try connection.scalar("PRAGMA wal_checkpoint(TRUNCATE)")
        try requireNoLog()
        return false
      }
      willReplace()
      try connection.replaceContents(by: source)
      // A log that stays is read by the next connection.
      _ = try? connection.scalar("PRAGMA wal_checkpoint(TRUNCATE)")
      return true
    } catch let error as SQLiteError where isForced && (error.isNotADatabase || error.isBusy) {
      return false
    } catch let error as SQLiteError where error.isReadOnly {
      // SQLite says so of a full disk too, where it cannot make the log. What is in a log that is there
      // is nowhere else: if the copy could not take the place after it, the old store would lack it.
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
