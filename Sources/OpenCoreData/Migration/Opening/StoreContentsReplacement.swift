import Effects
import Foundation
import WatershedSQLite

/// Writes the contents of a migrated copy into a store's own file, in one transaction that holds
/// the file's write lock from before the copy was made.
///
/// Renaming the copy over the file would leave other processes with the old file, and its WAL
/// beside the new one; this way they see an ordinary commit, and a crash leaves either the old
/// store or the new one.
struct StoreContentsReplacement {
  let url: URL
  let options: [AnyHashable: Any]
  let effects: Effects

  /// Passes the body a URL for the copy, and replaces the store with the copy afterwards.
  ///
  /// The body receives the file as it is under the lock; if it returns false nothing is replaced.
  func run(_ body: (StoreFile, URL) throws -> Bool) throws {
    let draft = StoreDraft(beside: url, effects: effects)
    let copy = draft.url
    let connection = try StoreSettings(options: options).migratingConnection(to: url)
    let files = try ExternalFiles(store: url, copy: copy, effects: effects)
    defer { draft.remove() }
    var isReplaced = false
    do {
      try connection.transaction {
        let file = try StoreFile.read(connection, url)
        guard try body(file, copy) else { return }
        try files.bring(for: copy)
        let migrated = try SQLiteConnection(path: copy.path, mode: .readOnly)
        try TableReplacement(target: connection, source: migrated).run()
        isReplaced = true
      }
    } catch {
      // The pages of a failed commit may be recovered from the log by the next process, which then
      // needs the files.
      if !isReplaced { files.takeBack() }
      throw error
    }
    if isReplaced { files.forget() }
  }
}
