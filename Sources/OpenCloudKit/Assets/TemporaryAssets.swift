import Foundation

/// The folder where fetched files are put: one for each process, in the system's temporary folder.
package enum TemporaryAssets {
  /// The folder of all processes' folders.
  private static let parent: URL = FileManager.default.temporaryDirectory
    .appendingPathComponent("CloudKitAssets", isDirectory: true)

  /// The folder; those of processes that have ended are removed when it is first used.
  package static let folder: URL = {
    sweep()
    return parent.appendingPathComponent(
      String(ProcessInfo.processInfo.processIdentifier),
      isDirectory: true
    )
  }()

  /// Removes the folders of processes that are gone.
  private static func sweep() {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: parent.path)) ?? []
    for name in names {
      guard let process = pid_t(name), kill(process, 0) == -1, errno == ESRCH else { continue }
      // What can't be removed belongs to somebody else.
      try? FileManager.default.removeItem(at: parent.appendingPathComponent(name))
    }
  }

  /// Where a fetched file is put.
  static func place(named name: UUID) -> URL {
    folder.appendingPathComponent(name.uuidString + ".fxd")
  }

  /// Removes the fetched files of records that are no longer needed, and those that came in part;
  /// files of others stay.
  package static func discard(filesOf records: [CKRecord]) {
    for record in records {
      for field in record.fields.values {
        for asset in field.value.assets {
          let url = asset.fileURL ?? place(named: asset.uuid)
          guard url.path.hasPrefix(folder.path + "/") else { continue }
          // A file that is gone already is what was wanted.
          try? FileManager.default.removeItem(at: url)
        }
      }
    }
  }
}
