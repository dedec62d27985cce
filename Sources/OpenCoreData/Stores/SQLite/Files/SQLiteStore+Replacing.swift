import Effects
import Foundation
import WatershedSQLite

extension SQLiteStore {
  /// Empties the store's file and deletes the files that belong to it.
  ///
  /// A file that is not a store, or that another process has open, is left unchanged, unless the
  /// options force its destruction.
  package static func destroy(at url: URL, options: [AnyHashable: Any]? = nil) throws {
    guard try StorePlace.hasFile(at: url) else { return }
    let isForced = flag(NSPersistentStoreForceDestroyOption, in: options)
    let file = url.resolvingSymlinksInPath()
    try translatingFile(url) {
      if !isForced, try FileSystem.size(of: url.path) > 0 {
        _ = try StoreFile.inspect(url)
        try requireUnused(file, options)
      }
      // The store stays complete until its file is emptied: if the process ends before, nothing is
      // destroyed.
      try checkpoint(file, isForced)
      let folder = ExternalFolder(store: url)
      let share = try folder.share()
      try empty(file)
      try folder.remove(share)
      StoreDraft.sweep(beside: url)
    }
  }

  /// Replaces a store by a copy of another, or creates the copy where there is none.
  ///
  /// The copy is written beside the destination, so a crash leaves either the old store or the new
  /// one.
  package static func replace(
    at destination: URL,
    options: [AnyHashable: Any]?,
    from source: URL,
    effects: Effects
  ) throws {
    // Replace the file that a symbolic link refers to, not the link.
    let file = destination.resolvingSymlinksInPath()
    guard file.standardizedFileURL != source.resolvingSymlinksInPath().standardizedFileURL
    else { return }
    let isForced = flag(NSPersistentStoreForceDestroyOption, in: options)
    try translatingFile(source) {
      _ = try StoreFile.inspect(source)
      try requireFolder(of: file)
      let draft = StoreDraft(beside: destination, effects: effects)
      defer { draft.remove() }
      let files = try ExternalFiles(store: destination, copy: source, effects: effects)
      var mayBeReplaced = false
      do {
        try copying(source) {
          try $0.copy(to: draft.url.path)
          try files.bring(for: draft.url)
        }
        try draft.requireWhole()
        // A connection of this process to the old file would read the new store's pages as its own.
        if !isForced, OpenStoreFiles.shared.isOpen(file) { throw openError(file) }
        let installation = StoreInstallation(
          draft: draft.url,
          place: file,
          isForced: isForced,
          timeout: timeout(options)
        )
        try translatingFile(file) { try installation.run { mayBeReplaced = true } }
      } catch {
        if !mayBeReplaced { files.takeBack() }
        throw error
      }
      files.forget()
    }
  }

  /// Lends a connection that reads a store's file, while another connection holds the write lock:
  /// everything is read from one moment, and no file of a large value is removed while it is
  /// copied.
  private static func copying(
    _ source: URL,
    _ body: (SQLiteConnection) throws -> Void
  ) throws {
    // The log of a crashed process is read by one connection alone, and so is a file that cannot be
    // written.
    let isLogLeft = try StorePlace.hasUnreadLog(at: source)
    let canLock =
      try FileSystem.isWritable(source.path)
      && FileSystem.isWritable(source.deletingLastPathComponent().path)
    guard canLock, !isLogLeft else {
      return try body(StoreFile.connection(to: source, busyTimeout: 10))
    }
    let lock = try SQLiteConnection(path: source.path, mode: .readWrite, busyTimeout: 10)
    try lock.transaction {
      try body(SQLiteConnection(path: source.path, mode: .readOnly, busyTimeout: 10))
    }
  }

  /// Runs the body while no other thread and no other process writes to the store.
  func withoutWrites<Result>(_ body: () throws -> Result) throws -> Result {
    try withWriter { writer in
      guard !isInMemory, !isReadOnly, !writer.connection.isInTransaction else {
        try requireOpenedModel(writer)
        return try body()
      }
      return try writer.connection.transaction(.immediate) {
        try requireOpenedModel(writer)
        return try body()
      }
    }
  }

  /// Copies the open store to a file that does not exist yet.
  func copy(to destination: URL) throws {
    try Self.requireFolder(of: destination)
    // A connection in a transaction cannot copy the file, and the writing one may be in one.
    if isInMemory {
      try withWriter { try $0.connection.copy(to: destination.path) }
    } else {
      try withReader { try $0.connection.copy(to: destination.path) }
    }
    if !isInMemory, let url {
      try StoreCopy.copyExternalData(from: url, to: destination, effects: effects)
    }
  }

  // MARK: Files

  /// Leaves an empty file, in which a store can be created, and deletes its log.
  private static func empty(_ file: URL) throws {
    // The log is removed before its store: a store without its last commits is consistent, but a
    // log without its store would be read into the next file at that path.
    try StorePlace.removeLog(of: file)
    if try FileSystem.isThere(file.path) {
      // Another file takes the name: a connection that has the old one open, in this process or
      // another, must neither read a file without pages nor lose its locks.
      try FileSystem.save(Data(), to: file.path)
    }
  }

  static func requireFolder(of url: URL) throws {
    let folder = url.deletingLastPathComponent()
    guard try !FileSystem.isThere(folder.path) else { return }
    throw StoreError(
      .fileWriteUnknown,
      "The store at \(url.path) cannot be created. There is no folder \(folder.path).",
      remedy: "Create the folder first.",
      context: [
        NSFilePathErrorKey: url.path, "reason": "Failed to create file; code = \(ENOENT)",
      ]
    )
  }

  /// Throws if another process has the file open; uses within this process are the caller's
  /// responsibility.
  private static func requireUnused(_ file: URL, _ options: [AnyHashable: Any]?) throws {
    guard !OpenStoreFiles.shared.isOpen(file) else { return }
    let connection = try SQLiteConnection(
      path: file.path,
      mode: .alone,
      busyTimeout: timeout(options)
    )
    try connection.transaction(.exclusive) {}
  }

  static func timeout(_ options: [AnyHashable: Any]?) -> Double {
    (options?[NSPersistentStoreTimeoutOption] as? NSNumber)?.doubleValue ?? 0
  }

  /// Checkpoints a store's log into its file, so that removing the log loses no commit.
  ///
  /// A damaged store may be destroyed. A log that could not be checkpointed for another reason,
  /// such as a full disk, has commits that exist nowhere else.
  private static func checkpoint(_ url: URL, _ isForced: Bool) throws {
    let hasLog = try ["-wal", "-journal"].contains {
      try FileSystem.size(of: url.path + $0) > 0
    }
    guard hasLog, try FileSystem.size(of: url.path) > 0 else { return }
    do {
      let connection = try SQLiteConnection(path: url.path, mode: .readWrite, busyTimeout: 0)
      // A read rolls back the unfinished transaction of a crashed process.
      _ = try connection.scalar("SELECT COUNT(*) FROM sqlite_master")
      _ = try connection.scalar("PRAGMA wal_checkpoint(TRUNCATE)")
    } catch let error as SQLiteError {
      guard error.isBusy || error.isNotADatabase || isForced else { throw error }
    }
    // SQLite does not report an incomplete checkpoint as an error.
    if !isForced, try FileSystem.size(of: url.path + "-wal") > 0 { throw openError(url) }
  }

  private static func openError(_ url: URL) -> StoreError {
    StoreError(
      .timeout,
      "The store at \(url.path) is in use, so it is neither replaced nor destroyed.",
      remedy: "Remove it from its coordinators first, and see that the disk has room.",
      context: [NSFilePathErrorKey: url.path]
    )
  }
}
