import Effects
import Foundation
import OpenCoreData

/// The folder beside a store for the files of values until their batch has been saved.
package struct AssetFolder: Sendable {
  package let url: URL
  /// The prefix of the names of the store's files: stores whose file names differ in the extension alone share
  /// the folder.
  private let prefix: String
  private let effects: Effects

  package init(url: URL, store: String, effects: Effects) {
    self.url = url
    prefix = store.isEmpty ? "" : store + "-"
    self.effects = effects
  }

  /// The folder of a store; that of a store without a file is a temporary one.
  package static func url(for store: SQLiteStore) -> URL {
    if !store.isInMemory, store.type == NSSQLiteStoreType, let url = store.url {
      return Self.url(forStoreAt: url)
    }
    return FileManager.default.temporaryDirectory
      .appendingPathComponent((store.identifier ?? "memory") + "_ckAssets", isDirectory: true)
  }

  /// The folder of a store: its base name and `_ckAssets`, as in Core Data.
  package static func url(forStoreAt store: URL) -> URL {
    let base = store.deletingPathExtension().lastPathComponent
    return store.deletingLastPathComponent()
      .appendingPathComponent(base + "_ckAssets", isDirectory: true)
  }

  /// Creates the folder, unless it exists.
  package func open() throws {
    do {
      try FileSystem.makeFolder(url.path)
    } catch {
      throw MirroringErrorCode.assetFolder.error(
        "The folder for large values could not be made at \(url.path).",
        underlying: error
      )
    }
  }

  /// Writes a value's file and returns its name.
  package func write(_ contents: Data) throws -> String {
    try open()
    let name = prefix + effects.uuid().uuidString + ".fxd"
    try FileSystem.save(contents, to: url.appendingPathComponent(name).path)
    return name
  }

  /// Writes a file that the app reads, unless there is one of the same content, and returns its name.
  package func write(_ contents: Data, once fingerprint: MirrorFingerprint) throws -> String {
    let digest = fingerprint.digest.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
    let name = prefix + "record-" + digest.joined() + ".fxd"
    let path = url.appendingPathComponent(name).path
    if try FileSystem.isThere(path) { return name }
    try open()
    try FileSystem.save(contents, to: path)
    return name
  }

  /// The absolute path of a file; a downloaded one already has it.
  package func path(_ file: String) -> String {
    file.hasPrefix("/") ? file : url.appendingPathComponent(file).path
  }

  package func read(_ file: String) throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: path(file)))
  }

  /// The names of the store's files.
  package func names() throws -> [String] {
    try FileSystem.names(in: url.path).filter { $0.hasPrefix(prefix) && $0.hasSuffix(".fxd") }
  }

  /// Removes files that are no longer needed.
  package func remove(_ files: some Sequence<String>) {
    for file in files where !file.isEmpty {
      // A file that cannot be removed only costs disk space.
      _ = try? FileSystem.remove(path(file))
    }
  }
}
