import Foundation

/// A data folder that has a server's keys or files, and no database.
///
/// Such a folder belongs to a server on PostgreSQL, or its database was lost: an empty database in
/// it would be served to clients in place of their data.
struct OrphanedFolder: Error, Hashable, CustomStringConvertible {
  var folder: String
  /// The names of the data that the folder contains.
  var found: String

  var description: String {
    "it has a server's \(found), and \(CloudKitService.databaseFileName) is missing or empty. If the server's data is "
      + "in PostgreSQL, name it with --database or in the configuration; if the database was lost, "
      + "restore a backup; for a new server, choose an empty folder."
  }

  /// Throws instead of allowing a new database beside the keys or files of another one.
  ///
  /// A database file without a byte is none: a copy that broke off leaves one, a full disk, and `sqlite3` that
  /// was to look at a lost database. SQLite would delete the log beside it.
  static func check(_ folder: URL) throws(OrphanedFolder) {
    let file = folder.appendingPathComponent(CloudKitService.databaseFileName)
    let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
    guard (attributes?[.size] as? NSNumber)?.int64Value ?? 0 == 0 else { return }
    try refuse(folder)
  }

  /// Throws for a folder that a server's keys or files are in; its database has no tables.
  static func refuse(_ folder: URL) throws(OrphanedFolder) {
    func has(_ path: String) -> Bool {
      FileManager.default.fileExists(atPath: folder.appendingPathComponent(path).path)
    }
    // A count that cannot be read is one.
    let hasCount = (try? CommitTally.read(in: folder)).map { $0 > 0 } ?? true
    let found = [
      has(CloudKitService.keyFileName) ? "key file" : nil,
      has("\(CloudKitService.assetFolderName)/\(FolderAssetStore.identityName)") ? "files" : nil,
      hasCount ? "count of transactions" : nil,
    ].compactMap(\.self)
    guard !found.isEmpty else { return }
    throw OrphanedFolder(folder: folder.path, found: found.joined(separator: " and "))
  }
}
