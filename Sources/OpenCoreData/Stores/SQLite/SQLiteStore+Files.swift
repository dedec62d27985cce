import Foundation
import WatershedSQLite

extension SQLiteStore {
  /// The metadata of the store at a URL, without opening it for writing.
  package static func metadata(at url: URL) throws -> [String: Any] {
    try translatingFile(url) { try StoreFile.inspect(url).metadata }
  }

  /// The model that the store at a URL carries.
  package static func model(inStoreAt url: URL) throws -> NSManagedObjectModel {
    try translatingFile(url) { try StoreFile.inspect(url).model() }
  }

  /// Replaces the metadata of a store that is not open.
  package static func setMetadata(_ metadata: [String: Any], at url: URL) throws {
    try translatingFile(url) {
      _ = try StoreFile.inspect(url)
      let connection = try SQLiteConnection(path: url.path, mode: .readWrite)
      try connection.transaction { try StoreMetadata.write(metadata, to: connection) }
    }
  }

  /// Deletes the store with all that belongs to it.
  ///
  /// A file that is not a store is left alone.
  package static func destroy(at url: URL) throws {
    guard FileManager.default.fileExists(atPath: url.path) else { return }
    try translatingFile(url) {
      _ = try StoreFile.inspect(url)
      let support = ExternalData(storeURL: url, effects: .live).folder?
        .deletingLastPathComponent()
      for path in [url.path, url.path + "-wal", url.path + "-shm", url.path + "-journal"]
      where FileManager.default.fileExists(atPath: path) {
        try FileManager.default.removeItem(atPath: path)
      }
      if let support, FileManager.default.fileExists(atPath: support.path) {
        try FileManager.default.removeItem(at: support)
      }
    }
  }

  private static func translatingFile<Result>(
    _ url: URL,
    _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as SQLiteError {
      throw StoreError.from(error, at: url.path, while: "reading").nsError
    } catch let error as StoreError {
      throw error.nsError
    }
  }
}
