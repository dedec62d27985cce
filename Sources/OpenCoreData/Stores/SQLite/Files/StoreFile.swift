import Effects
import Foundation
import WatershedSQLite

/// The metadata of a store's file, read before the file is changed.
struct StoreFile {
  let path: String
  let version: Int64
  let identifier: String
  let metadata: [String: Any]
  let tables: ExistingTables
  let modelCache: Data?

  /// The version hashes of the entities that the store holds.
  var hashes: [String: Data] {
    NSManagedObjectModel.versionHashes(inStoreMetadata: metadata) ?? [:]
  }

  var hasHistory: Bool { tables.columns["ACHANGE"] != nil }

  /// Reads the file through a connection that cannot write.
  static func inspect(_ url: URL, busyTimeout: Double = 10) throws -> StoreFile {
    let isInMemory = StorePlace.isInMemory(url)
    let found = isInMemory ? .missing : try FileSystem.look(at: url.path)
    guard found != .missing else {
      throw StoreError(
        .fileReadNoSuchFile,
        isInMemory
          ? "A store at \(url.path) is in memory: it has no file to read."
          : "There is no store at \(url.path).",
        remedy: isInMemory ? "Ask the coordinator that has added it." : "Check the URL.",
        context: ["NSFilePath": url.path]
      )
    }
    if found == .folder {
      throw StoreError(
        .fileReadUnknown,
        "The store at \(url.path) cannot be opened: it is a folder.",
        remedy: "Choose another place for the store.",
        context: [NSFilePathErrorKey: url.path, "NSSQLiteErrorDomain": 14]
      )
    }
    // A connection without locks may read while another process writes.
    for _ in 0..<2 {
      let before = try FileMoment(url)
      let file = Result {
        let connection = try connection(to: url, busyTimeout: busyTimeout)
        try requireWhole(url, connection)
        return try read(connection, url)
      }
      if try FileMoment(url) == before { return try file.get() }
    }
    return try read(
      SQLiteConnection(path: url.path, mode: .readOnly, busyTimeout: busyTimeout),
      url
    )
  }

  /// A state of a store's file and of its log: two differ if the store was written between them.
  private struct FileMoment: Equatable {
    let file: FileVersion?
    let log: FileVersion?

    init(_ url: URL) throws {
      file = try FileSystem.version(of: url.path)
      log = try FileSystem.version(of: url.path + "-wal")
    }
  }

  /// Reads the file through an open connection.
  static func read(_ connection: SQLiteConnection, _ url: URL) throws -> StoreFile {
    guard let (version, identifier, metadata) = try readMetadata(connection, url) else {
      throw notAStore(url, "it has no Z_METADATA")
    }
    let modelCache = try Self.modelCache(connection)
    if let hashes = NSManagedObjectModel.versionHashes(inStoreMetadata: metadata), let modelCache {
      ForeignHashes.note(hashes, modelCache: modelCache)
    }
    return StoreFile(
      path: url.path,
      version: version,
      identifier: identifier,
      metadata: metadata,
      tables: try ExistingTables(reading: connection),
      modelCache: modelCache
    )
  }

  /// Opens a connection that leaves the file, and the files beside it, unchanged.
  ///
  /// Without a log, none is created. A log without an index was left by a crashed process; its
  /// index is built in memory. Where both exist, another connection may have the store open.
  static func connection(
    to url: URL,
    busyTimeout: Double
  ) throws -> SQLiteConnection {
    func open(_ mode: SQLiteConnection.Mode) throws -> SQLiteConnection {
      try SQLiteConnection(path: url.path, mode: mode, busyTimeout: busyTimeout)
    }
    try rollBack(url, busyTimeout)
    if try FileSystem.size(of: url.path + "-wal") == 0,
      try FileSystem.size(of: url.path + "-journal") == 0
    {
      return try open(.immutable)
    }
    if try FileSystem.size(of: url.path + "-wal") > 0, try !FileSystem.isThere(url.path + "-shm"),
      try FileSystem.isWritable(url.path)
    {
      return try open(.alone)
    }
    return try open(.readOnly)
  }

  /// Lets SQLite roll back the unfinished transaction of a crashed process, if a journal beside the
  /// file records one.
  ///
  /// A read-only connection refuses such a file (sqlite.org/rescode.html#readonly_rollback).
  private static func rollBack(_ url: URL, _ busyTimeout: Double) throws {
    guard try FileSystem.size(of: url.path + "-journal") > 0, try FileSystem.isWritable(url.path),
      try FileSystem.isWritable(url.deletingLastPathComponent().path)
    else { return }
    let connection = try SQLiteConnection(
      path: url.path,
      mode: .readWrite,
      busyTimeout: busyTimeout
    )
    _ = try connection.scalar("SELECT COUNT(*) FROM sqlite_master")
  }

  /// Throws if the file ends within a page; SQLite itself refuses one with missing pages.
  ///
  /// A damaged page is detected when it is read: opening must not take longer for a larger store.
  private static func requireWhole(_ url: URL, _ connection: SQLiteConnection) throws {
    let length = try FileSystem.size(of: url.path)
    guard try FileSystem.size(of: url.path + "-wal") == 0,
      try FileSystem.size(of: url.path + "-journal") == 0,
      case .integer(let page)? = try connection.scalar("PRAGMA page_size"), page > 0,
      length % Int(page) != 0
    else { return }
    throw StoreError(
      .fileReadCorrupt,
      "The store at \(url.path) is cut off after \(length) bytes.",
      remedy: "Restore the file from a backup.",
      context: [NSFilePathErrorKey: url.path, "NSSQLiteErrorDomain": 11]
    )
  }

  private static func readMetadata(
    _ connection: SQLiteConnection,
    _ url: URL
  ) throws -> (version: Int64, identifier: String, metadata: [String: Any])? {
    do {
      return try StoreMetadata.read(connection)
    } catch let error as SQLiteError {
      throw error
    } catch {
      throw notAStore(url, "its metadata is damaged", cause: error)
    }
  }

  private static func modelCache(_ connection: SQLiteConnection) throws -> Data? {
    let hasTable = try connection.scalar(
      "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'Z_MODELCACHE'"
    )
    guard hasTable != nil,
      case .blob(let data)? = try connection.scalar("SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1")
    else { return nil }
    return data
  }

  /// The model that is stored in the file.
  func model() throws -> NSManagedObjectModel {
    guard let modelCache else {
      throw StoreError(
        .incompatibleVersionHash,
        "The store at \(path) carries no model: a Core Data before 2016 wrote it.",
        remedy: "Open it with the model that it was written with.",
        context: ["metadata": metadata]
      )
    }
    return try ModelArchive.model(fromModelCache: modelCache)
  }

  /// Throws if a later release has written the file in a format that this release does not know.
  func requireKnownFormat() throws {
    let hashes = (metadata[StoreMetadataKey.versionHashesVersion] as? NSNumber)?.intValue
    let found = max(Int(version), 1)
    guard version <= StoreMetadata.knownVersion,
      (hashes ?? StoreMetadata.knownHashesVersion) <= StoreMetadata.knownHashesVersion
    else {
      throw StoreError(
        .incompatibleSchema,
        "The store at \(path) has the format \(found).\(hashes ?? 0); this release reads up to "
          + "\(StoreMetadata.knownVersion).\(StoreMetadata.knownHashesVersion).",
        remedy: "Update the app, or open a store that it wrote itself.",
        context: ["metadata": metadata, "NSFilePath": path]
      )
    }
  }

  private static func notAStore(
    _ url: URL,
    _ reason: String,
    cause: (any Error)? = nil
  ) -> StoreError {
    StoreError(
      .fileReadCorrupt,
      "The file at \(url.path) is not a Core Data store: \(reason).",
      remedy: "Choose another place for the store, or restore the file from a backup.",
      context: ["NSFilePath": url.path],
      cause: cause
    )
  }
}
