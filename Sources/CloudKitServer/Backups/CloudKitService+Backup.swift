import CloudKitWebServices
import Effects
import Foundation
import WatershedSQLite

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Backups of a running server: a snapshot of the database, the files it refers to, the keys.
extension CloudKitService {
  static let databaseFileName = "watershed.sqlite"
  static let keyFileName = "field-keys.json"
  static let assetFolderName = "assets"

  /// Writes a backup to a folder that does not exist yet.
  ///
  /// The database is copied first. Files never change, and a file that a record stops using in
  /// between is kept for the grace period of assets, so all files that the copy refers to exist.
  /// Other files are left out: the receipts of their uploads are of no use in a restored server,
  /// and they may be removed while the backup is written.
  @discardableResult
  package func backUp(to folder: URL) async throws -> BackupManifest {
    let manager = FileManager.default
    guard !manager.fileExists(atPath: folder.path) else {
      throw BackupError(description: "A file or folder exists at \(folder.path) already.")
    }
    do {
      try await assets.bindStore()
    } catch let error as AssetStoreMismatch {
      throw BackupError(description: error.description)
    }
    let partial = folder.appendingPathExtension("partial")
    try? manager.removeItem(at: partial)
    do {
      try manager.createDirectory(
        at: partial,
        withIntermediateDirectories: true,
        attributes: PrivateFile.folderAttributes
      )
    } catch {
      throw BackupError(
        description:
          "The server may not write \(folder.path), as its own user; `watershed backup create` "
          + "writes anywhere, as the user of the command."
      )
    }
    do {
      let manifest = try await write(backup: partial)
      // Once the backup has its name, a power failure must leave it complete.
      sync()
      try manager.moveItem(at: partial, to: folder)
      try DurableFolder.synchronize(folder.deletingLastPathComponent())
      return manifest
    } catch {
      // An incomplete backup must not be mistaken for a complete one.
      try? manager.removeItem(at: partial)
      throw error
    }
  }

  private func write(backup folder: URL) async throws -> BackupManifest {
    let database = folder.appendingPathComponent(Self.databaseFileName)
    // On another lane than the writes: copying a large database takes long.
    try await effects.lane("server backup").run { [storage] in try storage.copy(to: database) }
    var paths = [Self.databaseFileName]
    for partition in try await assets.store.partitions() {
      for file in try await files(in: partition, usedIn: database) {
        let place = AssetPlace(partition, file.name)
        let path = Self.backupPath(of: place)
        try await copy(place, file.size, to: folder, path)
        paths.append(path)
      }
    }
    let keys = folder.appendingPathComponent(Self.keyFileName)
    do {
      try vault.export(to: keys)
    } catch let error as KeyRingMismatch {
      throw BackupError(description: error.description)
    }
    paths.append(Self.keyFileName)
    let manifest = BackupManifest(
      created: now,
      incarnation: storage.incarnation,
      files: try paths.map { try BackupManifest.describe($0, in: folder) }
    )
    let file = folder.appendingPathComponent(BackupManifest.fileName)
    try PrivateFile.write(WireCoding.encode(manifest), to: file)
    return manifest
  }

  /// The files of a partition that records of a copied database use.
  ///
  /// A used file that the store does not have is missing in the backup, whose check names it.
  func files(
    in partition: PartitionID,
    usedIn database: URL
  ) async throws -> [StoredAssetFile] {
    let used = try await effects.waitingLane("server backup").run {
      let connection = try SQLiteConnection(path: database.path, mode: .immutable)
      return Set(
        try connection.query(
          "SELECT DISTINCT digest FROM asset_uses WHERE partition = ?",
          [.integer(partition.rawValue)]
        ) { $0.text(0) }
      )
    }
    guard !used.isEmpty else { return [] }
    return try await assets.store.files(in: partition).filter { used.contains($0.name) }
  }

  private func copy(
    _ place: AssetPlace,
    _ size: Int64,
    to folder: URL,
    _ path: String
  ) async throws {
    let file = folder.appendingPathComponent(path)
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(),
      withIntermediateDirectories: true,
      attributes: PrivateFile.folderAttributes
    )
    PrivateFile.make(file.path)
    guard FileManager.default.fileExists(atPath: file.path) else {
      throw BackupError(description: "\(file.path) cannot be written.")
    }
    let handle = try FileHandle(forWritingTo: file)
    if size > 0 {
      try await assets.store.read(place, 0..<size) { try handle.write(contentsOf: $0) }
    }
    try handle.synchronize()
    try handle.close()
  }

  func createBackup(_ call: AdminCall) async throws -> AdminReply {
    let request: BackupRequest = try call.read()
    guard let path = request.path, path.hasPrefix("/") else {
      throw AdministrationError(description: "Name the backup's folder by its absolute path.")
    }
    // An administrator's password must not allow writing files of the machine.
    guard call.isOperator else {
      throw ErrorDictionary(.accessDenied, Self.backupRight)
    }
    do {
      let manifest = try await backUp(to: URL(fileURLWithPath: path, isDirectory: true))
      if request.confirms != true { noteBackup() }
      return try call.reply(
        BackupSummary(manifest, path: path),
        auditLog.record("backup.create", by: call, about: path)
      )
    } catch let error as BackupError {
      throw AdministrationError(description: error.description)
    }
  }
}

/// The body of `backup/create` and `backup/stream`.
package struct BackupRequest: Codable, Hashable, Sendable {
  /// The folder that the server writes; absent for a stream.
  package var path: String?
  /// Whether the caller calls `backup/confirm` when the backup is checked and in its place.
  ///
  /// Otherwise the server notes the time when the last byte has left it.
  package var confirms: Bool?

  package init(path: String? = nil, confirms: Bool? = nil) {
    self.path = path
    self.confirms = confirms
  }
}

/// The summary of a backup.
package struct BackupSummary: Codable, Hashable, Sendable {
  package var path: String
  package var files: Int
  package var bytes: Int64

  package init(_ manifest: BackupManifest, path: String) {
    self.path = path
    files = manifest.files.count
    bytes = manifest.files.reduce(0) { $0 + $1.size }
  }
}
