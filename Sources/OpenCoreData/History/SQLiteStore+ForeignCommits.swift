import Effects
import Foundation
import WatershedSQLite

/// Detects commits to a store's file by another process, or by another coordinator of this one.
///
/// The kernel notifies of writes to the file or its log; SQLite's `data_version` shows whether
/// another connection committed, since it changes with other connections' commits only
/// (sqlite.org/pragma.html#pragma_data_version).
extension SQLiteStore {
  /// The delays of further checks in seconds: a commit becomes visible a moment after its last
  /// write.
  private static let followUps = [0.01, 0.05, 0.25]

  /// Starts watching the file, unless it is watched already.
  func watchFile() {
    guard !isInMemory, let url, beginWatching() else { return }
    let name = url.lastPathComponent
    let watch = effects.files.watch(
      folder: url.deletingLastPathComponent().path,
      files: [name, name + "-wal"]
    ) { [weak self] in self?.fileWasWritten() }
    keep(watch)
    // Commits from here on count as new.
    lookForForeignCommits()
  }

  /// Called on the watcher's thread, also for this process's own writes.
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

  /// Notifies the observers of a foreign commit; must be called without a lock.
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
