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
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for name in migrated.subtracting(before).sorted() {
      let file = folder.appendingPathComponent(name)
      try StoreCopy.link(copyFolder.appendingPathComponent(name), file)
      brought.append(file)
    }
  }

  func takeBack() {
    // A file that stays costs space and nothing else.
    for file in brought { try? FileManager.default.removeItem(at: file) }
  }

  /// After the commit.
  func forget() {
    guard let folder else { return }
    for name in before.subtracting(migrated) {
      try? FileManager.default.removeItem(at: folder.appendingPathComponent(name))
    }
  }

  /// Where there is no folder there are no files; where it cannot be read there may be.
  private static func names(in folder: URL?) throws -> Set<String> {
    guard let folder else { return [] }
    do {
      return Set(try FileManager.default.contentsOfDirectory(atPath: folder.path))
    } catch let error as CocoaError
      where error.code == .fileReadNoSuchFile || error.code == .fileNoSuchFile
    {
      return []
    }
  }
}
