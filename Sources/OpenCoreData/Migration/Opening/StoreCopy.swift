import Effects
import Foundation
import WatershedSQLite

/// A complete copy of a store at another URL, including the pages that are only in the WAL, and the
/// files of external values.
enum StoreCopy {
  static func copy(_ source: URL, to copy: URL) throws {
    let connection = try SQLiteConnection(path: source.path, mode: .readOnly)
    // Reads one snapshot, regardless of concurrent writes (sqlite.org/lang_vacuum.html).
    try connection.run("VACUUM INTO ?", [.text(copy.path)])
    try copyExternalData(from: source, to: copy)
  }

  /// The files of external values are written once and never changed, so a hard link is enough.
  static func copyExternalData(from source: URL, to copy: URL) throws {
    guard let from = ExternalData(storeURL: source, effects: .live).folder,
      let to = ExternalData(storeURL: copy, effects: .live).folder
    else { return }
    let names = try FileSystem.names(in: from.path)
    guard !names.isEmpty else { return }
    try FileSystem.makeFolder(to.path)
    for name in names {
      try FileSystem.duplicate(
        from.appendingPathComponent(name).path,
        as: to.appendingPathComponent(name).path
      )
    }
  }
}
