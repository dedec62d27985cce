import Effects
import Foundation
import WatershedSQLite

/// Puts the contents of a migrated copy into a store's own file, in one transaction that holds the
/// file's write lock from before the copy was made.
///
/// Moving the copy over the file would leave other processes with the old one, and its WAL beside
/// the new one; this way they see an ordinary commit, and a crash leaves the old store or the new.
struct StoreTransplant {
  let url: URL
  let options: [AnyHashable: Any]
  let effects: Effects

  /// Gives the body a place for the copy, and replaces the store by what is there afterwards.
  ///
  /// The body is told the file as it is under the lock; where it returns false nothing is replaced.
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
        try files.bring()
        let migrated = try SQLiteConnection(path: copy.path, mode: .readOnly)
        try TableReplacement(target: connection, source: migrated).run()
        isReplaced = true
      }
    } catch {
      // A commit that failed may be found in the log by the next process, and needs its files then.
      if !isReplaced { files.takeBack() }
      throw error
    }
    if isReplaced { files.forget() }
  }
}
