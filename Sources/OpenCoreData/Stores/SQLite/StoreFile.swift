import Foundation
import WatershedSQLite

/// What a file says about itself before anything is done to it.
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
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else {
      throw StoreError(
        .fileReadNoSuchFile,
        "There is no store at \(url.path).",
        remedy: "Check the URL.",
        context: ["NSFilePath": url.path]
      )
    }
    if isFolder.boolValue { throw notAStore(url, "it is a folder") }
    let connection = try SQLiteConnection(
      path: url.path,
      mode: .readOnly,
      busyTimeout: busyTimeout
    )
    return try read(connection, url)
  }

  /// Reads the file through a connection that is open.
  static func read(_ connection: SQLiteConnection, _ url: URL) throws -> StoreFile {
    guard let (version, identifier, metadata) = try readMetadata(connection, url) else {
      throw notAStore(url, "it has no Z_METADATA")
    }
    return StoreFile(
      path: url.path,
      version: version,
      identifier: identifier,
      metadata: metadata,
      tables: try ExistingTables(reading: connection),
      modelCache: try Self.modelCache(connection)
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

  /// The model that the store carries.
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

  /// Refuses what a later release has written in a way that we cannot know.
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
