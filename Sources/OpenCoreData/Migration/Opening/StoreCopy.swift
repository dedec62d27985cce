import Foundation
import WatershedSQLite

/// A whole copy of a store at another place: what is only in the WAL, and the files of external
/// values, included.
enum StoreCopy {
  static func copy(_ source: URL, to copy: URL) throws {
    let connection = try SQLiteConnection(path: source.path, mode: .readOnly)
    // Reads one snapshot whatever others write meanwhile (sqlite.org/lang_vacuum.html).
    try connection.run("VACUUM INTO ?", [.text(copy.path)])
    guard let from = ExternalData(storeURL: source, effects: .live).folder,
      let to = ExternalData(storeURL: copy, effects: .live).folder,
      FileManager.default.fileExists(atPath: from.path)
    else { return }
    try FileManager.default.createDirectory(at: to, withIntermediateDirectories: true)
    for name in try FileManager.default.contentsOfDirectory(atPath: from.path) {
      try link(from.appendingPathComponent(name), to.appendingPathComponent(name))
    }
  }

  /// The files of external values are written once and never changed, so a second name is enough.
  static func link(_ file: URL, _ name: URL) throws {
    do {
      try FileManager.default.linkItem(at: file, to: name)
    } catch {
      // No hard links here.
      try FileManager.default.copyItem(at: file, to: name)
    }
  }
}
