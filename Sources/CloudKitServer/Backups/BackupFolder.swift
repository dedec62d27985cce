import CloudKitWebServices
import Foundation
import WatershedSQLite

/// A backup on the disk: checked, and put back.
package struct BackupFolder: Sendable {
  private let url: URL

  package init(_ url: URL) {
    self.url = url
  }

  package func manifest() throws -> BackupManifest {
    let file = url.appendingPathComponent(BackupManifest.fileName)
    guard FileManager.default.fileExists(atPath: file.path) else {
      throw BackupError(description: "\(url.path) is not a backup: it has no manifest.")
    }
    return try WireCoding.decode(BackupManifest.self, from: try Data(contentsOf: file))
  }

  /// Everything that is wrong with the backup, each in a sentence.
  package func problems() throws -> [String] {
    let manifest = try manifest()
    guard manifest.schema == 1 else { return ["its format is newer than this server"] }
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
    return try databaseProblems(manifest)
  }

  /// Asks SQLite, and looks for every file that a record uses.
  private func databaseProblems(_ manifest: BackupManifest) throws -> [String] {
    let database = url.appendingPathComponent(CloudKitService.databaseFileName)
    let connection = try SQLiteConnection(path: database.path, mode: .readOnly)
    var problems = try connection.query("PRAGMA integrity_check") { $0.text(0) }
      .filter { $0 != "ok" }.map { "the database: \($0)" }
    let paths = Set(manifest.files.map(\.path))
    let used = try connection.query("SELECT DISTINCT partition, digest FROM asset_uses") {
      "assets/\($0.int64(0))/\($0.text(1).prefix(2))/\($0.text(1))"
    }
    problems += used.filter { !paths.contains($0) }.sorted().map {
      "a record uses \($0), which the backup lacks"
    }
    return problems
  }

  /// Puts the backup into a data folder that is empty or not there yet.
  ///
  /// What clients know of the newer data is void: the storage begins a new incarnation, and they
  /// compare and send again what the server lost.
  package func restore(to folder: URL, configuration: ServiceConfiguration) async throws {
    let problems = try problems()
    guard problems.isEmpty else {
      throw BackupError(description: "The backup is damaged: \(problems.joined(separator: "; ")).")
    }
    let manager = FileManager.default
    let there = (try? manager.contentsOfDirectory(atPath: folder.path)) ?? []
    guard there.filter({ $0 != "lock" }).isEmpty else {
      throw BackupError(description: "The folder \(folder.path) is not empty.")
    }
    try manager.createDirectory(at: folder, withIntermediateDirectories: true)
    for file in try manifest().files {
      let target = folder.appendingPathComponent(file.path)
      try manager.createDirectory(
        at: target.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try manager.copyItem(at: url.appendingPathComponent(file.path), to: target)
    }
    var configuration = configuration
    configuration.dataFolder = folder
    let service = try CloudKitService(configuration)
    let outcome: Result<Void, any Error>
    do {
      outcome = .success(try await service.beginNewIncarnation())
    } catch {
      outcome = .failure(error)
    }
    await service.shutdown()
    try outcome.get()
  }
}
