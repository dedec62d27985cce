import Effects
import Foundation
import WatershedSQLite

/// Commits to a store's file that another process made, or another coordinator of this one.
///
/// The kernel says when the file or its log was written; whether that was somebody else is asked of
/// SQLite, whose `data_version` changes with the commits of other connections only
/// (sqlite.org/pragma.html#pragma_data_version).
extension SQLiteStore {
  /// The last write of a commit comes a moment before the commit can be seen, so it is looked for a
  /// few times more.
  private static let followUps = [0.01, 0.05, 0.25]

  /// Begins to watch the file, where that has not begun.
  func watchFile() {
    guard !isInMemory, let url, beginWatching() else { return }
    let name = url.lastPathComponent
    let watch = effects.files.watch(
      folder: url.deletingLastPathComponent().path,
      files: [name, name + "-wal"]
    ) { [weak self] in self?.fileWasWritten() }
    keep(watch)
    // From here on everything counts as new.
    lookForForeignCommits()
  }

  /// Called on the watcher's thread, for this process's own writes too.
  private func fileWasWritten() {
    lookForForeignCommits()
    guard beginFollowUps() else { return }
    let (effects, rounds) = (effects, Self.followUps)
    effects.tasks.spawn { [weak self] in
      while let round = self?.nextFollowUp(of: rounds.count) {
        do {
          try await effects.clock.sleep(seconds: rounds[round])
        } catch {
          return
        }
        self?.lookForForeignCommits()
      }
    }
  }

  /// Tells whom it may concern that somebody else has committed; never with a lock held.
  func announceForeignCommits() {
    effects.tasks.spawn { [weak self] in
      guard let self else { return }
      let number: Int64?
      do {
        number = hasHistoryTables ? try read { try $0.lastTransactionNumber } : nil
      } catch {
        StoreLog.warning("The history of \(path) could not be read: \(error)")
        number = nil
      }
      var commit = StoreCommit(
        author: nil,
        contextName: nil,
        transactionNumber: number,
        inserted: [],
        updated: [],
        deleted: [],
        isContextSave: false
      )
      commit.mergesIntoContexts = false
      announce(commit)
    }
  }
}
