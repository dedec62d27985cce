import Effects
import Foundation

/// The files of external values that a store gets from the copy that replaces it, and those that it
/// no longer needs afterwards.
///
/// Their names are UUIDs, so old and new files exist together until the copy has replaced the
/// store: a crash at any moment leaves each store with all of its files.
final class ExternalFiles {
  private let folder: URL?
  private let copyFolder: URL?
  private let before: Set<String>
  private var brought: [URL] = []
  private var migrated: Set<String> = []

  init(store: URL, copy: URL, effects: Effects) throws {
    folder = ExternalData(storeURL: store, effects: effects).folder
    copyFolder = ExternalData(storeURL: copy, effects: effects).folder
    before = try Self.names(in: folder)
  }

  /// Called before the commit: a store never refers to a missing file.
  func bring() throws {
    migrated = try Self.names(in: copyFolder)
    guard let folder, let copyFolder, !migrated.isEmpty else { return }
    try FileSystem.makeFolder(folder.path)
    for name in migrated.subtracting(before).sorted() {
      let file = folder.appendingPathComponent(name)
      try FileSystem.duplicate(copyFolder.appendingPathComponent(name).path, as: file.path)
      brought.append(file)
    }
  }

  func takeBack() {
    // A file that cannot be removed only costs disk space.
    for file in brought { _ = try? FileSystem.remove(file.path) }
  }

  /// Called after the commit.
  func forget() {
    guard let folder else { return }
    for name in before.subtracting(migrated) {
      // A file that cannot be removed only costs disk space.
      _ = try? FileSystem.remove(folder.appendingPathComponent(name).path)
    }
  }

  /// Without a folder there are no files; if it cannot be read, this throws.
  private static func names(in folder: URL?) throws -> Set<String> {
    guard let folder else { return [] }
    return Set(try FileSystem.names(in: folder.path))
  }
}
