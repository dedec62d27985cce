import Foundation
import WatershedSQLite

extension SQLiteStore {
  /// The metadata of the store at a URL, without opening it for writing.
  package static func metadata(at url: URL) throws -> [String: Any] {
    try translatingFile(url) { try StoreFile.inspect(url).metadata }
  }

  /// The model that is stored in the store at a URL.
  package static func model(inStoreAt url: URL) throws -> NSManagedObjectModel {
    try translatingFile(url) { try StoreFile.inspect(url).model() }
  }

  /// Replaces the metadata of a store that is not open.
  package static func setMetadata(_ metadata: [String: Any], at url: URL) throws {
    try translatingFile(url) {
      let file = try StoreFile.inspect(url)
      var metadata = metadata
      // The type and the identifier are always present, even if the new metadata lacks them.
      metadata[NSStoreTypeKey] = NSSQLiteStoreType
      if metadata[NSStoreUUIDKey] == nil { metadata[NSStoreUUIDKey] = file.identifier }
      let connection = try SQLiteConnection(path: url.path, mode: .readWrite)
      try connection.transaction { try StoreMetadata.write(metadata, to: connection) }
    }
  }

  static func translatingFile<Result>(
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
