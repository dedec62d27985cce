import Effects
import Foundation

/// The folder beside a store where values wait in files until their batch has been saved.
package struct AssetFolder: Sendable {
  package let url: URL
  private let effects: Effects

  package init(url: URL, effects: Effects) {
    self.url = url
    self.effects = effects
  }

  /// The folder of a store: its base name and `_ckAssets`, as Core Data names it.
  package static func url(forStoreAt store: URL) -> URL {
    let base = store.deletingPathExtension().lastPathComponent
    return store.deletingLastPathComponent()
      .appendingPathComponent(base + "_ckAssets", isDirectory: true)
  }

  /// Makes the folder, unless it is there.
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
    let name = effects.uuid().uuidString + ".fxd"
    try FileSystem.save(contents, to: url.appendingPathComponent(name).path)
    return name
  }

  /// The whole path of a file; a downloaded one has it already.
  package func path(_ file: String) -> String {
    file.hasPrefix("/") ? file : url.appendingPathComponent(file).path
  }

  package func read(_ file: String) throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: path(file)))
  }

  /// Removes files that are no longer needed.
  package func remove(_ files: some Sequence<String>) {
    for file in files where !file.isEmpty {
      // A file that stays costs space and nothing else.
      _ = try? FileSystem.remove(path(file))
    }
  }
}
