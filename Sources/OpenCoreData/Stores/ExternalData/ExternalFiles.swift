import Effects
import Foundation
import WatershedSQLite

/// The files of external values that a store gets from the copy that replaces it, and those that it
/// no longer needs afterwards.
///
/// Their names are UUIDs, so old and new files exist together until the copy has replaced the
/// store: a crash at any moment leaves each store with all of its files. Two stores never share a file:
/// where the copy's folder is the store's, the copy's rows get files of their own.
final class ExternalFiles {
  private let folder: ExternalFolder
  private let copyFolder: ExternalFolder
  private let effects: Effects
  private let before: Set<String>
  private var brought: [URL] = []
  private var needed: Set<String> = []

  /// `store` is the place of the copy, and `copy` the store beside which the copy's files are.
  init(store: URL, copy: URL, effects: Effects) throws {
    folder = ExternalFolder(store: store)
    copyFolder = ExternalFolder(store: copy)
    self.effects = effects
    switch try folder.share() {
    case .everything: before = try folder.names()
    case .files(let names): before = names
    }
  }

  /// Brings the files that the rows of the copy, in a file that no connection writes, refer to.
  ///
  /// Called before the commit: a store never refers to a missing file.
  func bring(for rows: URL) throws {
    let there = try copyFolder.names()
    guard !there.isEmpty else { return }
    // Closing a connection that may write removes the log of the copy, which is to be moved alone.
    let rows = ExternalReferences(
      connection: try SQLiteConnection(path: rows.path, mode: .readWrite)
    )
    let references = try rows.names().intersection(there)
    guard !references.isEmpty else { return }
    try FileSystem.makeFolder(folder.url.path)
    let taken = try folder.names()
    var renamed: [String: String] = [:]
    for former in references.sorted() {
      guard !before.contains(former) else {
        needed.insert(former)
        continue
      }
      let name = taken.contains(former) ? effects.uuid().uuidString : former
      if name != former { renamed[former] = name }
      let file = folder.file(name)
      try FileSystem.duplicate(copyFolder.file(former).path, as: file.path)
      brought.append(file)
      needed.insert(name)
    }
    if !renamed.isEmpty { try rows.rename(renamed) }
  }

  func takeBack() {
    // A file that cannot be removed only costs disk space.
    for file in brought { _ = try? FileSystem.remove(file.path) }
  }

  /// Called after the commit.
  func forget() {
    for name in before.subtracting(needed) {
      // A file that cannot be removed only costs disk space.
      _ = try? FileSystem.remove(folder.file(name).path)
    }
  }
}
