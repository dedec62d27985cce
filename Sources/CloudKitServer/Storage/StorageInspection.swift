import Foundation
import WatershedPostgreSQL
import WatershedSQLite

/// An inspection of a stopped server's data that creates and changes nothing.
package struct StorageInspection: Sendable {
  /// The result for one inspected part.
  package struct Finding: Hashable, Sendable {
    package var subject: String
    /// The problem; nil if there is none.
    package var problem: String?
    /// Whether the data is damaged, so that it has to be restored from a backup.
    ///
    /// Data that could not be read, because another program locks it or it can't be reached, is not
    /// damaged.
    package var isDamage = false
  }

  package private(set) var findings: [Finding] = []

  package init(_ configuration: ServiceConfiguration) async {
    let known: StorageFingerprints
    do {
      known = try Self.fingerprints(configuration)
      findings.append(Finding(subject: "database", problem: nil))
    } catch let error as SQLiteError where error.isBusy {
      let problem = "another program has the database locked, such as a server that starts"
      findings.append(Finding(subject: "database", problem: problem))
      return
    } catch {
      let isDamage = error is BackupError || (error as? SQLiteError)?.isNotADatabase == true
      findings.append(Finding(subject: "database", problem: "\(error)", isDamage: isDamage))
      return
    }
    if let file = configuration.fieldKeyFile {
      findings.append(Finding(subject: "keys", problem: Self.keyProblem(file, known.fieldKeys)))
    }
    do {
      let found = try await Self.identity(configuration)
      let isOther = known.assetStore.map { $0 != found } ?? false
      let problem = isOther ? AssetStoreMismatch(isEmpty: found == nil).description : nil
      findings.append(Finding(subject: "assets", problem: problem))
    } catch {
      findings.append(Finding(subject: "assets", problem: "\(error)"))
    }
  }

  /// Checks the database, and reads its fingerprints of keys and assets.
  private static func fingerprints(
    _ configuration: ServiceConfiguration
  ) throws -> StorageFingerprints {
    if let url = configuration.database {
      let pool = PostgreSQLPool(url: url)
      defer { pool.close() }
      return try pool.use { connection in
        try connection.transaction(.snapshot) {
          try fingerprints(PostgreSQLSession(connection: connection))
        }
      }
    }
    guard let folder = configuration.dataFolder else { return StorageFingerprints() }
    let file = folder.appendingPathComponent(CloudKitService.databaseFileName)
    // A server that was killed leaves a log behind, which contains its last commits.
    let log = try? FileManager.default.attributesOfItem(atPath: file.path + "-wal")
    let hasLog = (log?[.size] as? NSNumber)?.int64Value ?? 0 > 0
    let connection = try SQLiteConnection(path: file.path, mode: hasLog ? .alone : .immutable)
    let problems = try BackupFolder.integrityProblems(connection)
    guard problems.isEmpty else {
      throw BackupError(description: problems.joined(separator: "; "))
    }
    return try fingerprints(SQLiteSession(connection: connection))
  }

  private static func fingerprints(_ session: some SQLSession) throws -> StorageFingerprints {
    try StorageFormat.current.check(session)
    return try ServiceFacts(session: session).fingerprints
  }

  private static func keyProblem(_ file: URL, _ known: [String: String]) -> String? {
    do {
      guard let ring = try KeyRing.read(file) else {
        guard !known.isEmpty else { return nil }
        throw KeyRingMismatch(file: file.path, problem: .missingFile, ids: known.keys.sorted())
      }
      try ring.check(against: known, file: file)
      return nil
    } catch {
      return "\(error)"
    }
  }

  private static func identity(_ configuration: ServiceConfiguration) async throws -> String? {
    if let store = configuration.assetStore { return try await store.identity() }
    guard let folder = configuration.dataFolder else { return nil }
    return try FolderAssetStore.identity(
      of: folder.appendingPathComponent(CloudKitService.assetFolderName)
    )
  }
}

extension ServiceConfiguration {
  /// Whether there is data to open; it creates none.
  package func hasData() throws -> Bool {
    guard let database else {
      guard let dataFolder else { return false }
      let file = dataFolder.appendingPathComponent(CloudKitService.databaseFileName)
      return FileManager.default.fileExists(atPath: file.path)
    }
    let pool = PostgreSQLPool(url: database)
    defer { pool.close() }
    return try pool.use {
      try $0.query("SELECT 1 WHERE to_regclass('service') IS NOT NULL").count > 0
    }
  }
}
