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
    guard !isInMemory, let url, foreign.beginWatching() else { return }
    let name = url.lastPathComponent
    let watch = effects.files.watch(
      folder: url.deletingLastPathComponent().path,
      files: [name, name + "-wal"]
    ) { [weak self] in self?.fileWasWritten() }
    foreign.keep(watch)
    // Commits from here on count as new.
    lookForForeignCommits()
  }

  /// Called on the watcher's thread, also for this process's own writes.
  private func fileWasWritten() {
    lookForForeignCommits()
    guard foreign.beginFollowUps() else { return }
    let (effects, rounds) = (effects, Self.followUps)
    effects.tasks.spawn { [weak self] in
      while let round = self?.foreign.nextFollowUp(of: rounds.count) {
        do {
          try await effects.clock.sleep(seconds: rounds[round])
        } catch {
          return
        }
        self?.lookForForeignCommits()
      }
    }
  }

  /// Notes the file's version and model at the opening: rows are cached from then on, and a commit of
  /// another process after it makes them old.
  ///
  /// Throws if the file was migrated after its metadata, with these version hashes, were read.
  func noteOpenedFile(hashes: [String: Data]) throws {
    try withWriter { writer in
      guard case .integer(let version)? = try writer.connection.scalar("PRAGMA data_version") else {
        return
      }
      guard try storedModel.open(writer.connection, hashes: hashes) else { throw migratedError }
      foreign.note(version)
    }
  }

  /// Empties the cache if another process has written since the last look; the caller holds the writer.
  ///
  /// Throws if that was a migration to another model.
  func noticeForeignCommits(_ writer: StoreConnection) throws {
    try requireOpenedModel()
    guard case .integer(let version)? = try writer.connection.scalar("PRAGMA data_version"),
      foreign.isNew(version)
    else { return }
    defer {
      cache.removeAll()
      announceForeignCommits()
    }
    // A version is noted once its model was compared: if that fails, the next look does it again.
    try requireOpenedModel(writer)
    foreign.note(version)
  }

  /// Looks for foreign commits unless a writer is at work, which looks itself.
  func lookForForeignCommits() {
    _ = tryWriter { try noticeForeignCommits($0) }
  }

  /// Before a fetch: looks for foreign commits, but not at every fetch and not while a save runs.
  func noticeForeignCommitsBeforeReading() {
    guard !isInMemory else { return }
    if foreign.isDue(at: effects.clock.uptime) { lookForForeignCommits() }
  }

  /// Notifies the observers of a foreign commit; must be called without a lock.
  func announceForeignCommits() {
    effects.tasks.spawn { [weak self] in
      guard let self else { return }
      let number: Int64?
      do {
        // A migrated store is not read: the next read of each observer throws.
        let isRead = hasHistoryTables && !storedModel.isMigrated
        number = isRead ? try read { try $0.lastTransactionNumber } : nil
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
