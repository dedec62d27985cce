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
    "it has a server's \(found) and no \(CloudKitService.databaseFileName). If the server's data is "
      + "in PostgreSQL, name it with --database or in the configuration; if the database was lost, "
      + "restore a backup; for a new server, choose an empty folder."
  }

  /// Throws instead of allowing a new database beside the keys or files of another one.
  static func check(_ folder: URL) throws(OrphanedFolder) {
    func has(_ path: String) -> Bool {
      FileManager.default.fileExists(atPath: folder.appendingPathComponent(path).path)
    }
    guard !has(CloudKitService.databaseFileName) else { return }
    let found = [
      has(CloudKitService.keyFileName) ? "key file" : nil,
      has("\(CloudKitService.assetFolderName)/\(FolderAssetStore.identityName)") ? "files" : nil,
    ].compactMap(\.self)
    guard !found.isEmpty else { return }
    throw OrphanedFolder(folder: folder.path, found: found.joined(separator: " and "))
  }
}
