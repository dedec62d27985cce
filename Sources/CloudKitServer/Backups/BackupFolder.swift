import CloudKitWebServices
import Effects
import Foundation
import WatershedSQLite

/// A backup on disk, which can be verified and restored.
package struct BackupFolder: Sendable {
  private let url: URL

  package init(_ url: URL) {
    self.url = url
  }

  package func manifest() throws -> BackupManifest {
    try UnreadablePlace.check(url)
    let file = url.appendingPathComponent(BackupManifest.fileName)
    try UnreadablePlace.check(file)
    guard FileManager.default.fileExists(atPath: file.path) else {
      throw BackupError(description: "\(url.path) is not a backup: it has no manifest.")
    }
    guard
      let manifest = try? WireCoding.decode(BackupManifest.self, from: try Data(contentsOf: file))
    else { throw BackupError(description: "The manifest of \(url.path) is damaged.") }
    return manifest
  }

  /// Why this program cannot restore the backup: a newer program wrote its database.
  private func formatProblem() throws -> String? {
    let file = url.appendingPathComponent(CloudKitService.databaseFileName)
    guard FileManager.default.fileExists(atPath: file.path) else { return nil }
    do {
      let connection = try SQLiteConnection(path: file.path, mode: .immutable)
      try StorageFormat.current.check(SQLiteSession(connection: connection))
      return nil
    } catch let error as StorageVersionError {
      return error.description
    }
  }

  /// Everything that is wrong with the backup, each in a sentence.
  package func problems() throws -> [String] {
    let manifest = try manifest()
    guard manifest.schema == 1 else { return ["its format is newer than this server"] }
    let strange = manifest.files.filter { !$0.isInside }
    guard strange.isEmpty else {
      return ["its manifest names files outside of the backup, so it is refused"]
    }
    var problems: [String] = []
    for file in manifest.files {
      guard FileManager.default.fileExists(atPath: url.appendingPathComponent(file.path).path)
      else {
        problems.append("\(file.path) is missing")
        continue
      }
      let found = try BackupManifest.describe(file.path, in: url)
      if found != file { problems.append("\(file.path) has changed since the backup was made") }
    }
    guard problems.isEmpty else { return problems }
    // Tables of a newer format cannot be checked further.
    if let problem = try formatProblem() { return [problem] }
    return try databaseProblems(manifest)
  }

  /// Runs SQLite's integrity check, and checks that every file used by a record exists.
  private func databaseProblems(_ manifest: BackupManifest) throws -> [String] {
    let database = url.appendingPathComponent(CloudKitService.databaseFileName)
    // Immutable, so that no file is created in the backup.
    let connection = try SQLiteConnection(path: database.path, mode: .immutable)
    var problems = try Self.integrityProblems(connection).map { "the database: \($0)" }
    let paths = Set(manifest.files.map(\.path))
    let used = try connection.query("SELECT DISTINCT partition, digest FROM asset_uses") {
      "assets/\($0.int64(0))/\($0.text(1).prefix(2))/\($0.text(1))"
    }
    problems += used.filter { !paths.contains($0) }.sorted().map {
      "a record uses \($0), which the backup lacks"
    }
    return problems + (try keyProblems(connection))
  }

  /// Checks that the backup's keys decrypt the fields in its database.
  private func keyProblems(_ connection: SQLiteConnection) throws -> [String] {
    let known = try Self.fingerprints(connection).fieldKeys
    let file = url.appendingPathComponent(CloudKitService.keyFileName)
    guard let ring = try KeyRing.read(file) else {
      return ["the keys of encrypted fields are missing: \(CloudKitService.keyFileName)"]
    }
    do {
      try ring.check(against: known, file: file)
      return []
    } catch {
      return [error.description]
    }
  }

  /// The database's fingerprints of keys and asset store; empty if an older server wrote it.
  static func fingerprints(_ connection: SQLiteConnection) throws -> StorageFingerprints {
    let kept = try connection.query("SELECT value FROM service WHERE name = 'fingerprints'") {
      $0.blob(0)
    }
    guard let data = kept.first else { return StorageFingerprints() }
    return try WireCoding.decode(StorageFingerprints.self, from: data)
  }

  static func integrityProblems(_ connection: SQLiteConnection) throws -> [String] {
    try connection.query("PRAGMA integrity_check(20)") { $0.text(0) }.filter { $0 != "ok" }
  }

  /// Restores the backup into a data folder that is empty or missing and, if the configuration
  /// names them, into an empty PostgreSQL and a bucket, regardless of the engine that it was made
  /// from.
  ///
  /// The storage begins a new incarnation: clients with newer data than the backup compare, and
  /// send again what the server lost; all others continue.
  ///
  /// A bucket with a server's files is refused unless the restored data takes the place of that server's.
  package func restore(
    to folder: URL,
    configuration: ServiceConfiguration,
    takesOverFiles: Bool = false
  ) async throws {
    try refuseDamage()
    try Self.refuseTaken(folder, configuration)
    try await Self.refuseUsed(configuration, takesOverFiles: takesOverFiles)
    let manager = FileManager.default
    try PrivateFile.makeFolder(folder)
    do {
      try UnfinishedRestore.mark(folder)
      for file in try manifest().files {
        try await put(file, in: folder, configuration)
      }
      if let database = configuration.database {
        try fill(database, configuration.effects)
      } else {
        let storage = try SQLiteStorage(folder: folder, effects: configuration.effects)
        defer { storage.close() }
        try storage.branchOff()
        // The restored server has an asset store of its own, whose fingerprint its first start
        // records.
        try storage.changeFingerprints { $0.assetStore = nil }
      }
      try UnfinishedRestore.unmark(folder)
    } catch {
      // An incomplete restore must not prevent the next attempt.
      let names = (try? manager.contentsOfDirectory(atPath: folder.path)) ?? []
      for name in names where name != "lock" && name != UnfinishedRestore.fileName {
        try? manager.removeItem(at: folder.appendingPathComponent(name))
      }
      if let keys = configuration.keyFile { try? manager.removeItem(at: keys) }
      // Removed last: an interrupted removal keeps the folder unusable.
      try? manager.removeItem(at: folder.appendingPathComponent(UnfinishedRestore.fileName))
      throw error
    }
  }

  /// Throws for a backup that is damaged or incomplete.
  package func refuseDamage() throws {
    let problems = try problems()
    guard problems.isEmpty else {
      throw BackupError(
        description: "The backup cannot be restored: \(problems.joined(separator: "; "))"
      )
    }
  }

  /// Throws for a place with data: a folder that has anything but a lock, or a key file.
  package static func refuseTaken(_ folder: URL, _ configuration: ServiceConfiguration) throws {
    try UnfinishedRestore.check(folder)
    let manager = FileManager.default
    let there = (try? manager.contentsOfDirectory(atPath: folder.path)) ?? []
    guard there.filter({ $0 != "lock" }).isEmpty else {
      throw BackupError(description: "The folder \(folder.path) is not empty.")
    }
    if let keys = configuration.keyFile, manager.fileExists(atPath: keys.path) {
      throw BackupError(description: "There are keys in \(keys.path) already.")
    }
  }

  /// Throws for a database with rows, before files are uploaded, and for an asset store with a server's files.
  ///
  /// The restored server would take the store for its own: both number their partitions alike, and each removes
  /// the files that only the other's records use.
  package static func refuseUsed(
    _ configuration: ServiceConfiguration,
    takesOverFiles: Bool
  ) async throws {
    if let database = configuration.database, try !PostgreSQLStorage.isEmpty(database) {
      throw PostgreSQLStorage.notEmpty
    }
    guard !takesOverFiles, try await configuration.assetStore?.identity() != nil else { return }
    throw BackupError(
      description:
        "The bucket of the configuration has a server's files. Two servers with data of their own must not share "
        + "it: each removes what only the other's records use. For a drill, give no bucket or an empty one; if "
        + "the restored data takes the place of the lost data of that server, add --same-bucket."
    )
  }

  private func put(
    _ file: BackupManifest.File,
    in folder: URL,
    _ configuration: ServiceConfiguration
  ) async throws {
    let source = url.appendingPathComponent(file.path)
    var target = folder.appendingPathComponent(file.path)
    switch file.path {
    case CloudKitService.databaseFileName where configuration.database != nil: return
    case CloudKitService.keyFileName: target = configuration.keyFile ?? target
    default:
      let parts = file.path.split(ascii: "/")
      if let store = configuration.assetStore, parts.count == 4, let id = Int64(parts[1]) {
        let place = AssetPlace(PartitionID(rawValue: id), String(parts[3]))
        return try await upload(source, to: store, place)
      }
    }
    try PrivateFile.makeFolder(target.deletingLastPathComponent())
    // A backup may have been copied, and its files made readable for others.
    try PrivateFile.copy(source, to: target)
  }

  private func upload(
    _ file: URL,
    to store: any AssetStore,
    _ place: AssetPlace
  ) async throws {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }
    let upload = try await store.begin(place)
    do {
      while let chunk = try handle.read(upToCount: 1_048_576), !chunk.isEmpty {
        try await upload.write(chunk)
      }
      try await upload.finish()
    } catch {
      await upload.cancel()
      throw error
    }
  }

  /// Copies the backup's database into PostgreSQL.
  private func fill(_ database: String, _ effects: Effects) throws {
    let manager = FileManager.default
    // A copy: opening it migrates it to this server's format, and the backup must stay unchanged.
    let place = manager.temporaryDirectory.appendingPathComponent(
      "watershed-restore-\(effects.uuid().uuidString)"
    )
    try manager.createDirectory(
      at: place,
      withIntermediateDirectories: true,
      attributes: PrivateFile.folderAttributes
    )
    defer { try? manager.removeItem(at: place) }
    let name = CloudKitService.databaseFileName
    try manager.copyItem(
      at: url.appendingPathComponent(name),
      to: place.appendingPathComponent(name)
    )
    let source = try SQLiteStorage(folder: place, effects: effects)
    defer { source.close() }
    let target = try PostgreSQLStorage(url: database, effects: effects)
    defer { target.close() }
    try target.takeIn(source)
  }
}
