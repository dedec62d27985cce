import Effects
import Foundation

/// The files of external values that a store gets from a copy that takes its place, and those that it
/// no longer needs then.
///
/// Their names are UUIDs, so old and new ones stand beside each other until the copy has taken the
/// place: a crash at any moment leaves each store with all of its files.
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

  /// Before the commit: a store never names a file that is not there.
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
    // A file that stays costs space and nothing else.
    for file in brought { _ = try? FileSystem.remove(file.path) }
  }

  /// After the commit.
  func forget() {
    guard let folder else { return }
    for name in before.subtracting(migrated) {
      // A file that stays costs space and nothing else.
      _ = try? FileSystem.remove(folder.appendingPathComponent(name).path)
    }
  }

  /// Where there is no folder there are no files; where it cannot be read there may be.
  private static func names(in folder: URL?) throws -> Set<String> {
    guard let folder else { return [] }
    return Set(try FileSystem.names(in: folder.path))
  }
}
