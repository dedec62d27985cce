import Foundation

/// The folder of downloaded files: one for each process, in the system's temporary folder.
package enum TemporaryAssets {
  /// The folder that holds the folders of all processes.
  private static let parent: URL = FileManager.default.temporaryDirectory
    .appendingPathComponent("CloudKitAssets", isDirectory: true)

  /// This process's folder.
  ///
  /// The first access removes the folders of processes that have ended.
  package static let folder: URL = {
    sweep()
    return parent.appendingPathComponent(
      String(ProcessInfo.processInfo.processIdentifier),
      isDirectory: true
    )
  }()

  /// Removes the folders of processes that no longer run.
  private static func sweep() {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: parent.path)) ?? []
    for name in names {
      guard let process = pid_t(name), kill(process, 0) == -1, errno == ESRCH else { continue }
      // A folder that can't be removed belongs to another user.
      try? FileManager.default.removeItem(at: parent.appendingPathComponent(name))
    }
  }

  /// The path of a downloaded file.
  static func place(named name: UUID) -> URL {
    folder.appendingPathComponent(name.uuidString + ".fxd")
  }

  /// Removes the downloaded files of records, complete or partial.
  ///
  /// Files outside this folder are kept.
  package static func discard(filesOf records: [CKRecord]) {
    for record in records {
      for field in record.fields.values {
        for asset in field.value.assets {
          let url = asset.fileURL ?? place(named: asset.uuid)
          guard url.path.hasPrefix(folder.path + "/") else { continue }
          // A file that was already removed is no error.
          try? FileManager.default.removeItem(at: url)
        }
      }
    }
  }
}
