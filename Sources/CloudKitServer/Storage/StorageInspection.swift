import Foundation

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
    } catch let error as StorageFailure where error.kind == .locked {
      let problem = "another program has the database locked, such as a server that starts"
      findings.append(Finding(subject: "database", problem: problem))
      return
    } catch {
      let isDamage =
        error is BackupError || error is OrphanedFolder
        || (error as? StorageFailure)?.kind == .damaged
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
    if let folder = configuration.dataFolder { try UnfinishedRestore.check(folder) }
    if let url = configuration.database { return try PostgreSQLStorage.inspect(url) }
    guard let folder = configuration.dataFolder else { return StorageFingerprints() }
    return try SQLiteStorage.inspect(folder)
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
