import Foundation
import WatershedSQLite

extension SQLiteStorage {
  /// Checks the file in a folder without changing it, and reads its fingerprints of keys and assets.
  static func inspect(_ folder: URL) throws -> StorageFingerprints {
    try OrphanedFolder.check(folder)
    return try StorageFailure.converting {
      let file = folder.appendingPathComponent(CloudKitService.databaseFileName)
      // A server that was killed leaves a log behind, which contains its last commits.
      let log = try? FileManager.default.attributesOfItem(atPath: file.path + "-wal")
      let hasLog = (log?[.size] as? NSNumber)?.int64Value ?? 0 > 0
      let connection = try SQLiteConnection(path: file.path, mode: hasLog ? .alone : .immutable)
      let problems = try BackupFolder.integrityProblems(connection)
      guard problems.isEmpty else {
        throw StorageFailure(
          kind: .damaged,
          cause: BackupError(description: problems.joined(separator: "; "))
        )
      }
      let session = SQLiteSession(connection: connection)
      if try StorageFormat.current.isMissing(session) { try OrphanedFolder.refuse(folder) }
      try StorageFormat.current.check(session)
      return try ServiceFacts(session: session).fingerprints
    }
  }
}
