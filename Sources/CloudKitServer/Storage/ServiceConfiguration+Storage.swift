import Foundation

/// The one place that chooses the storage engine of a configuration.
extension ServiceConfiguration {
  /// Opens PostgreSQL if the configuration has its URL, otherwise the file in the data folder;
  /// without a folder everything is in memory.
  package func openStorage() throws -> any Storage {
    if let dataFolder { try UnfinishedRestore.check(dataFolder) }
    if let database { return try PostgreSQLStorage(url: database, effects: effects) }
    if let dataFolder { try OrphanedFolder.check(dataFolder) }
    return try StorageFailure.converting {
      try SQLiteStorage(folder: dataFolder, effects: effects)
    }
  }

  /// Whether there is data to open; it creates none.
  package func hasData() throws -> Bool {
    if let database { return try PostgreSQLStorage.hasTables(database) }
    guard let dataFolder else { return false }
    try UnreadablePlace.check(dataFolder)
    let file = dataFolder.appendingPathComponent(CloudKitService.databaseFileName)
    return FileManager.default.fileExists(atPath: file.path)
  }
}
