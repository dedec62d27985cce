import Foundation

/// The folder where fetched files are put: one for each process, in the system's temporary folder.
package enum TemporaryAssets {
  /// The folder.
  package static let folder: URL = FileManager.default.temporaryDirectory
    .appendingPathComponent("CloudKitAssets", isDirectory: true)
    .appendingPathComponent(String(ProcessInfo.processInfo.processIdentifier), isDirectory: true)

  /// Writes a fetched file.
  static func store(_ data: Data, named name: UUID) throws -> URL {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let url = folder.appendingPathComponent(name.uuidString + ".fxd")
    try data.write(to: url)
    return url
  }

  /// Removes the fetched files of records that are no longer needed; files of others stay.
  package static func discard(filesOf records: [CKRecord]) {
    for record in records {
      for field in record.fields.values {
        for asset in field.value.assets {
          guard let url = asset.fileURL, url.path.hasPrefix(folder.path + "/") else { continue }
          // A file that is gone already is what was wanted.
          try? FileManager.default.removeItem(at: url)
        }
      }
    }
  }
}
