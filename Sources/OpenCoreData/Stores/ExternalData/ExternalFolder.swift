import Effects
import Foundation
import WatershedSQLite

/// The folder of a store's large values, `.NAME_SUPPORT/_EXTERNAL_DATA`.
///
/// Its name has no extension, as in Core Data, so stores of one folder such as `Model.sqlite` and
/// `Model.backup` share it. A file in it belongs to the store whose rows refer to it.
struct ExternalFolder {
  /// The files of the folder that belong to the store alone.
  enum Share {
    /// No other store can use the folder.
    case everything
    /// The files that the store's rows refer to, and the rows of no other store.
    case files(Set<String>)
  }

  let store: URL
  /// The folder of the files themselves.
  let url: URL

  init(store: URL) {
    self.store = store
    let name = store.deletingPathExtension().lastPathComponent
    url = store.deletingLastPathComponent()
      .appendingPathComponent(".\(name)_SUPPORT", isDirectory: true)
      .appendingPathComponent("_EXTERNAL_DATA", isDirectory: true)
  }

  /// The names of the files; none where there is no folder.
  func names() throws -> Set<String> { Set(try FileSystem.names(in: url.path)) }

  func file(_ name: String) -> URL { url.appendingPathComponent(name) }

  /// The folder of notes on files that are to be removed; see ``ReplacedFiles``.
  var replaced: URL {
    url.deletingLastPathComponent().appendingPathComponent("_REPLACED_DATA", isDirectory: true)
  }

  /// The files that belong to the store alone, by its present rows.
  ///
  /// If a store's rows cannot be read, no file is treated as this store's alone: a file too many costs
  /// disk space, and one too few is a lost value.
  func share() throws -> Share {
    // Listed before the other stores are: a store file is created before its external data, so no file of a store
    // that was missed is in this list.
    let names = try names()
    let others = try otherStores()
    guard !others.isEmpty else { return .everything }
    guard !names.isEmpty else { return .files([]) }
    do {
      var own = try ExternalReferences.names(in: store).intersection(names)
      for other in others where !own.isEmpty {
        own.subtract(try ExternalReferences.names(in: other))
      }
      return .files(own)
    } catch let error as SQLiteError {
      StoreLog.warning(
        "The files in \(url.path) stay, because it is not known which of them belong to "
          + "\(store.lastPathComponent): \(error)"
      )
      return .files([])
    }
  }

  /// Removes what belonged to a store that is gone.
  func remove(_ share: Share) throws {
    let folder = url.deletingLastPathComponent().path
    switch share {
    case .everything: try FileSystem.removeFolder(folder)
    case .files(let names):
      for name in names { try FileSystem.remove(file(name).path) }
      for path in [url.path, replaced.path, folder] { try FileSystem.removeEmptyFolder(path) }
    }
  }

  /// The files beside the store that have its name with another extension.
  private func otherStores() throws -> [URL] {
    let folder = store.deletingLastPathComponent()
    let base = store.deletingPathExtension().lastPathComponent
    return try FileSystem.names(in: folder.path).filter { name in
      name != store.lastPathComponent && name.hasPrefix(base)
        && !StorePlace.logSuffixes.contains { name.hasSuffix($0) }
    }
    .map { folder.appendingPathComponent($0) }
    .filter { file in
      guard file.deletingPathExtension().lastPathComponent == base else { return false }
      // A file that cannot be a store is not opened: closing it would drop the process's locks on it.
      guard case .file(let size) = try FileSystem.look(at: file.path) else { return false }
      return size >= Self.smallestStore
    }
  }

  /// The bytes of the smallest page of SQLite.
  private static let smallestStore = 512
}
