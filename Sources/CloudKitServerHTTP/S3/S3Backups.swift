import CloudKitServer
import CloudKitWebServices
import Foundation
import NIOCore
import NIOFoundationCompat

/// Backups in a bucket: the files of each below its name, the manifest last.
///
/// A backup without its manifest is incomplete, as in a folder.
package struct S3Backups: Sendable {
  private let store: S3AssetStore
  /// The place of all backups: empty, or with a slash at its end.
  private var prefix: String { store.settings.prefix }

  /// The prefix of the settings is the place of all backups: empty, or with a slash at its end.
  package init(_ settings: S3AssetStore.Settings) throws {
    store = try S3AssetStore(settings)
  }

  // MARK: Listing

  /// The names of everything that is there, complete or not.
  package func names() async throws -> [String] {
    var found: Set<String> = []
    try await store.list(prefix: prefix, delimiter: "/") { page in
      for folder in XMLValues.all("Prefix", in: page)
      where folder.hasPrefix(prefix) && folder.hasSuffix("/") && folder != prefix {
        found.insert(String(folder.dropFirst(prefix.count).dropLast()))
      }
    }
    return found.sorted()
  }

  /// The result of looking for a backup's manifest.
  package enum FoundManifest {
    case readable(BackupManifest)
    case unreadable
    /// The backup is incomplete, or none.
    case missing
  }

  package func manifest(of name: String) async throws -> FoundManifest {
    let response = try await store.send(
      .GET,
      key: "\(prefix)\(name)/\(BackupManifest.fileName)",
      expecting: [404]
    )
    var data = Data()
    for try await part in response.body {
      data.append(Data(buffer: part, byteTransferStrategy: .copy))
    }
    guard response.status != .notFound else { return .missing }
    return (try? WireCoding.decode(BackupManifest.self, from: data)).map(FoundManifest.readable)
      ?? .unreadable
  }

  private func keys(of name: String) async throws -> [String] {
    var found: [String] = []
    try await store.list(prefix: "\(prefix)\(name)/", delimiter: nil) { page in
      found += XMLValues.all("Contents", in: page).compactMap { XMLValues.first("Key", in: $0) }
    }
    return found
  }

  // MARK: Transfers

  /// Throws if a backup of the name, or a part of one, is there; also if the bucket cannot be reached.
  package func refuseTaken(_ name: String) async throws {
    guard try await keys(of: name).isEmpty else {
      throw BackupError(description: "The bucket has something named \(prefix)\(name) already.")
    }
  }

  /// Uploads the backup of a folder; the manifest comes last and makes it complete.
  package func upload(_ folder: URL, as name: String) async throws {
    try await refuseTaken(name)
    let files = try BackupFolder(folder).manifest().files.map(\.path)
    for path in files { try await upload(path, of: folder, as: name) }
    let present = Set(try await keys(of: name))
    guard files.allSatisfy({ present.contains("\(prefix)\(name)/\($0)") }) else {
      throw BackupError(description: "Files of \(name) were deleted from the bucket meanwhile.")
    }
    try await complete(name, folder)
  }

  /// Uploads the manifest, unless another command has completed a backup of the name since.
  private func complete(_ name: String, _ folder: URL) async throws {
    let file = folder.appendingPathComponent(BackupManifest.fileName)
    let key = "\(prefix)\(name)/\(BackupManifest.fileName)"
    let manifest = try Data(contentsOf: file)
    var response = try await store.send(
      .PUT,
      key: key,
      headers: [("if-none-match", "*")],
      body: manifest,
      expecting: [409, 412, 501]
    )
    _ = try await store.text(response)
    // Stores without conditional writes, such as Backblaze B2, reply so; two commands of one name within a moment
    // are not distinguished there.
    if response.status.code == 501, try await !keys(of: name).contains(key) {
      response = try await store.send(.PUT, key: key, headers: [], body: manifest, expecting: [])
      _ = try await store.text(response)
    }
    guard (200..<300).contains(response.status.code) else {
      throw BackupError(description: "Another command has written \(prefix)\(name) meanwhile.")
    }
  }

  private func upload(_ path: String, of folder: URL, as name: String) async throws {
    try await upload(folder.appendingPathComponent(path), to: "\(prefix)\(name)/\(path)")
  }

  private func upload(_ file: URL, to key: String) async throws {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }
    let size = try handle.seekToEnd()
    try handle.seek(toOffset: 0)
    let upload = store.begin(key: key, partSize: S3AssetStore.partSize(ofFile: Int64(size)))
    do {
      while let piece = try handle.read(upToCount: 1 << 20), !piece.isEmpty {
        try await upload.write(piece)
      }
      try await upload.finish()
    } catch {
      await upload.cancel()
      throw error
    }
  }

  /// The manifest of a backup; throws if there is none.
  @discardableResult
  package func readManifest(of name: String) async throws -> BackupManifest {
    switch try await manifest(of: name) {
    case .readable(let found): return found
    case .unreadable: throw BackupError(description: "The manifest of \(name) is damaged.")
    case .missing:
      throw BackupError(
        description: "\(prefix)\(name) in the bucket is not a backup: it has no manifest."
      )
    }
  }

  /// Downloads a backup into an empty folder.
  package func download(_ name: String, to folder: URL) async throws {
    let manifest = try await readManifest(of: name)
    guard manifest.files.allSatisfy(\.isInside) else {
      throw BackupError(description: "The manifest of \(name) names files outside of the backup.")
    }
    for file in manifest.files {
      try await download(
        "\(prefix)\(name)/\(file.path)",
        size: file.size,
        to: folder.appendingPathComponent(file.path)
      )
    }
    let bytes = try WireCoding.encode(manifest)
    try Self.makeFile(folder.appendingPathComponent(BackupManifest.fileName)).write(
      contentsOf: bytes
    )
  }

  /// Downloads an object in parts: a request has a minute, and a database may take longer.
  private func download(_ key: String, size: Int64, to file: URL) async throws {
    let handle = try Self.makeFile(file)
    defer { try? handle.close() }
    let part = Int64(S3AssetStore.partSize)
    for start in stride(from: 0, to: size, by: Int64.Stride(part)) {
      let response = try await store.send(
        .GET,
        key: key,
        headers: [("range", "bytes=\(start)-\(min(start + part, size) - 1)")],
        expecting: [404, 416]
      )
      guard response.status != .notFound else {
        _ = try await store.text(response)
        // Missing in the folder too: the check of the backup reports it.
        return try FileManager.default.removeItem(at: file)
      }
      guard response.status != .rangeNotSatisfiable else {
        // The object is shorter than the manifest says, and so is the file: the check reports it.
        _ = try await store.text(response)
        return
      }
      for try await piece in response.body {
        try handle.write(contentsOf: Data(buffer: piece, byteTransferStrategy: .copy))
      }
    }
  }

  /// Creates a file that only its owner can read.
  private static func makeFile(_ file: URL) throws -> FileHandle {
    let manager = FileManager.default
    try manager.createDirectory(
      at: file.deletingLastPathComponent(),
      withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700]
    )
    let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
    guard manager.createFile(atPath: file.path, contents: nil, attributes: attributes) else {
      throw BackupError(description: "\(file.path) cannot be written.")
    }
    return try FileHandle(forWritingTo: file)
  }

  // MARK: Deleting

  /// Aborts uploads to backups of certain names that began before a date and were never finished.
  package func abortUploads(before date: Date, of isName: (String) -> Bool) async throws {
    try await store.removeRemains(before: date) { key in
      guard key.hasPrefix(prefix) else { return false }
      return isName(String(key.dropFirst(prefix.count).prefix(before: "/")))
    }
  }

  /// Deletes a backup, its manifest first: what an interruption leaves is no complete backup.
  package func delete(_ name: String) async throws {
    let manifest = "\(prefix)\(name)/\(BackupManifest.fileName)"
    for key in [manifest] + (try await keys(of: name)).filter({ $0 != manifest }) {
      _ = try await store.text(try await store.send(.DELETE, key: key, expecting: [404]))
    }
  }
}
