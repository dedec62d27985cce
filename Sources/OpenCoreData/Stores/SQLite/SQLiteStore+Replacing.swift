import Effects
import Foundation
import WatershedSQLite

extension SQLiteStore {
  /// Empties the store's file and deletes all that belongs to it.
  ///
  /// A file that is not a store is left alone, and so is one that another process has open, unless
  /// the options say to destroy it in any case.
  package static func destroy(at url: URL, options: [AnyHashable: Any]? = nil) throws {
    guard try StorePlace.hasFile(at: url) else { return }
    let isForced = flag(NSPersistentStoreForceDestroyOption, in: options)
    if FileManager.default.fileExists(atPath: url.path), !isForced {
      try translatingFile(url) {
        if try StoreFile.size(url.path) > 0 { _ = try StoreFile.inspect(url) }
        try requireUnused(url, options)
      }
    }
    // Until the file is empty the store is whole: a process that ends before has destroyed nothing.
    try translatingFile(url) { _ = try checkpoint(url.resolvingSymlinksInPath(), isForced) }
    try empty(url)
  }

  /// Puts a copy of one store in the place of another, or where there is none.
  ///
  /// The copy is made beside the place and renamed, so a crash leaves the old store or the new.
  package static func replace(
    at destination: URL,
    options: [AnyHashable: Any]?,
    from source: URL,
    effects: Effects
  ) throws {
    // The file itself is replaced, not a link to it.
    let file = destination.resolvingSymlinksInPath()
    guard file.standardizedFileURL != source.resolvingSymlinksInPath().standardizedFileURL
    else { return }
    let isForced = flag(NSPersistentStoreForceDestroyOption, in: options)
    try translatingFile(source) {
      _ = try StoreFile.inspect(source)
      try requireFolder(of: file)
      let draft = file.deletingLastPathComponent()
        .appendingPathComponent(".\(file.lastPathComponent)-\(effects.uuid().uuidString)")
      defer { try? FileManager.default.removeItem(at: draft) }
      let files = try ExternalFiles(store: destination, copy: source, effects: effects)
      do {
        try copying(source) {
          try $0.copy(to: draft.path)
          try files.bring()
        }
        if FileManager.default.fileExists(atPath: file.path) {
          if !isForced {
            // A connection to a file that lost its name would save to nowhere.
            if OpenStoreFiles.shared.isOpen(file) { throw openError(file) }
            try requireUnused(file, options)
          }
          try settleLog(of: file, isForced: isForced)
        }
        guard rename(draft.path, file.path) == 0 else {
          throw StoreError(
            .fileWriteUnknown,
            "The store at \(file.path) cannot be replaced; it has what it had.",
            remedy: "Check the permissions of the folder.",
            context: [NSFilePathErrorKey: file.path]
          )
        }
      } catch {
        files.takeBack()
        throw error
      }
      files.forget()
    }
  }

  /// Lends a connection that reads a store's file, with the file's write lock held meanwhile: what is
  /// read is of one moment, and no file of a large value goes while it is copied.
  private static func copying(
    _ source: URL,
    _ body: (SQLiteConnection) throws -> Void
  ) throws {
    let manager = FileManager.default
    // The log of a process that died is read by a connection of its own, and so is a file that
    // nobody can write.
    let isLogLeft =
      try StoreFile.size(source.path + "-wal") > 0
      && !manager.fileExists(atPath: source.path + "-shm")
    let canLock =
      manager.isWritableFile(atPath: source.path)
      && manager.isWritableFile(atPath: source.deletingLastPathComponent().path)
    guard canLock, !isLogLeft else {
      return try body(StoreFile.connection(to: source, busyTimeout: 10))
    }
    let lock = try SQLiteConnection(path: source.path, mode: .readWrite, busyTimeout: 10)
    try lock.transaction {
      try body(SQLiteConnection(path: source.path, mode: .readOnly, busyTimeout: 10))
    }
  }

  /// Runs the body while no thread and no other process writes to the store.
  func withoutWrites<Result>(_ body: () throws -> Result) throws -> Result {
    try withWriter { writer in
      guard !isInMemory, !isReadOnly, !writer.connection.isInTransaction else {
        return try body()
      }
      return try writer.connection.transaction(.immediate) { try body() }
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
    if !isInMemory, let url { try Self.copyExternalData(from: url, to: destination) }
  }

  // MARK: Files

  /// Leaves an empty file, which a store can be made in, and nothing beside it.
  private static func empty(_ url: URL) throws {
    let file = url.resolvingSymlinksInPath()
    try removeLog(of: file)
    if FileManager.default.fileExists(atPath: file.path) {
      // Another file takes the name: a connection that has the old one open, in this process or
      // another, must neither meet a file without pages nor lose its locks.
      try Data().write(to: file, options: .atomic)
    }
    try removeExternalData(of: url)
  }

  /// Removes a store's files; refuses where there is no regular file, and has nothing to do where
  /// the store has none.
  static func removeFiles(of url: URL) throws {
    guard try StorePlace.hasFile(at: url) else { return }
    let file = url.resolvingSymlinksInPath()
    try removeLog(of: file)
    if FileManager.default.fileExists(atPath: file.path) {
      try FileManager.default.removeItem(at: file)
    }
    try removeExternalData(of: url)
  }

  /// The log goes before its store: a store without its last commits is whole, a log without its
  /// store is read into the next file at its place.
  private static func removeLog(of file: URL) throws {
    for suffix in ["-wal", "-shm", "-journal"]
    where FileManager.default.fileExists(atPath: file.path + suffix) {
      try FileManager.default.removeItem(atPath: file.path + suffix)
    }
  }

  private static func removeExternalData(of url: URL) throws {
    guard let support = supportFolder(of: url),
      FileManager.default.fileExists(atPath: support.path)
    else { return }
    try FileManager.default.removeItem(at: support)
  }

  private static func supportFolder(of url: URL) -> URL? {
    ExternalData(storeURL: url, effects: .live).folder?.deletingLastPathComponent()
  }

  private static func copyExternalData(from source: URL, to destination: URL) throws {
    guard let theirs = supportFolder(of: source), let ours = supportFolder(of: destination) else {
      return
    }
    if FileManager.default.fileExists(atPath: ours.path) {
      try FileManager.default.removeItem(at: ours)
    }
    guard FileManager.default.fileExists(atPath: theirs.path) else { return }
    try FileManager.default.copyItem(at: theirs, to: ours)
  }

  private static func requireFolder(of url: URL) throws {
    let folder = url.deletingLastPathComponent()
    guard !FileManager.default.fileExists(atPath: folder.path) else { return }
    throw StoreError(
      .fileWriteUnknown,
      "The store at \(url.path) cannot be created. There is no folder \(folder.path).",
      remedy: "Create the folder first.",
      context: [
        NSFilePathErrorKey: url.path, "reason": "Failed to create file; code = \(ENOENT)",
      ]
    )
  }

  /// Refuses a file that another process has open; the own process knows what it does.
  private static func requireUnused(_ url: URL, _ options: [AnyHashable: Any]?) throws {
    guard !OpenStoreFiles.shared.isOpen(url), try StoreFile.size(url.path) > 0 else { return }
    let timeout = (options?[NSPersistentStoreTimeoutOption] as? NSNumber)?.doubleValue ?? 0
    let connection = try SQLiteConnection(path: url.path, mode: .alone, busyTimeout: timeout)
    try connection.transaction(.exclusive) {}
  }

  /// Brings the log of a store that is about to be replaced into its file.
  ///
  /// A log that another connection of this process has open stays: without it the file would lose
  /// commits.
  private static func settleLog(of url: URL, isForced: Bool) throws {
    let isBusy = try checkpoint(url, isForced)
    guard !isBusy || isForced else { throw openError(url) }
    for suffix in ["-wal", "-shm", "-journal"] {
      // What is not there need not be removed.
      try? FileManager.default.removeItem(atPath: url.path + suffix)
    }
  }

  /// Brings the log of a store into its file, so that the log can go without a commit; whether another
  /// connection is in the way.
  ///
  /// A damaged store may be replaced and destroyed. A log that could not be brought in for another
  /// reason, a full disk for one, has commits that are nowhere else.
  private static func checkpoint(_ url: URL, _ isForced: Bool) throws -> Bool {
    let hasLog = try ["-wal", "-journal"].contains { try StoreFile.size(url.path + $0) > 0 }
    guard hasLog, try StoreFile.size(url.path) > 0 else { return false }
    do {
      let connection = try SQLiteConnection(path: url.path, mode: .readWrite, busyTimeout: 0)
      // Reading takes back what a process that died had begun.
      _ = try connection.scalar("SELECT COUNT(*) FROM sqlite_master")
      return try connection.scalar("PRAGMA wal_checkpoint(TRUNCATE)") == .integer(1)
    } catch let error as SQLiteError {
      guard error.isBusy || error.isNotADatabase || isForced else { throw error }
      return error.isBusy
    }
  }

  private static func openError(_ url: URL) -> StoreError {
    StoreError(
      .timeout,
      "The store at \(url.path) is open, so it is not replaced.",
      remedy: "Remove it from its coordinators first.",
      context: [NSFilePathErrorKey: url.path]
    )
  }
}
