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
        if StoreFile.size(url.path) > 0 { _ = try StoreFile.inspect(url) }
        try requireUnused(url, options)
      }
    }
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
    let destination = destination.resolvingSymlinksInPath()
    guard destination.standardizedFileURL != source.resolvingSymlinksInPath().standardizedFileURL
    else { return }
    try translatingFile(source) {
      _ = try StoreFile.inspect(source)
      try requireFolder(of: destination)
      let draft = destination.deletingLastPathComponent()
        .appendingPathComponent(".\(destination.lastPathComponent)-\(effects.uuid().uuidString)")
      defer { try? FileManager.default.removeItem(at: draft) }
      try StoreFile.connection(to: source, busyTimeout: 10).copy(to: draft.path)
      if FileManager.default.fileExists(atPath: destination.path) {
        if !flag(NSPersistentStoreForceDestroyOption, in: options) {
          try requireUnused(destination, options)
        }
        settleLog(of: destination)
      }
      guard rename(draft.path, destination.path) == 0 else {
        throw StoreError(
          .fileWriteUnknown,
          "The store at \(destination.path) cannot be replaced; it is as it was.",
          remedy: "Check the permissions of the folder.",
          context: [NSFilePathErrorKey: destination.path]
        )
      }
      try copyExternalData(from: source, to: destination)
    }
  }

  /// Copies the open store to a file that does not exist yet.
  func copy(to destination: URL) throws {
    try Self.requireFolder(of: destination)
    try withWriter { try $0.connection.copy(to: destination.path) }
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
    guard !OpenStoreFiles.shared.isOpen(url), StoreFile.size(url.path) > 0 else { return }
    let timeout = (options?[NSPersistentStoreTimeoutOption] as? NSNumber)?.doubleValue ?? 0
    let connection = try SQLiteConnection(path: url.path, mode: .alone, busyTimeout: timeout)
    try connection.transaction(.exclusive) {}
  }

  /// Brings the log of a store home that is about to be replaced.
  private static func settleLog(of url: URL) {
    do {
      let connection = try SQLiteConnection(path: url.path, mode: .readWrite, busyTimeout: 0)
      try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    } catch {
      // A damaged store may be replaced too.
    }
    for suffix in ["-wal", "-shm", "-journal"] {
      try? FileManager.default.removeItem(atPath: url.path + suffix)
    }
  }
}
