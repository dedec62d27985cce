import Effects
import Foundation
import Synchronization

/// The folder of downloaded files: one for each process, in the system's temporary folder.
package enum TemporaryAssets {
  /// The folder that holds the folders of all processes.
  private static let parent: URL = FileManager.default.temporaryDirectory
    .appendingPathComponent("CloudKitAssets", isDirectory: true)

  private static let own = ProcessFolder(in: parent) { ProcessEffects.current.uuid() }

  private static let uses = Mutex(TemporaryFileUses())

  /// This process's folder.
  ///
  /// The first access removes the folders of processes that have ended.
  package static var folder: URL { own.url }

  /// The path of a downloaded file.
  ///
  /// Removes the files that are due, so that a process that downloads files for weeks does not fill the
  /// disk.
  static func place(named name: UUID) -> URL {
    removeDueFiles()
    return folder.appendingPathComponent(name.uuidString + ".fxd")
  }

  // MARK: Objects

  /// Records a new object of a file; files outside this folder are ignored.
  static func begin(_ file: URL?) {
    guard let path = path(of: file) else { return }
    uses.withLock { $0.begin(path) }
  }

  /// Records that an object of a file was released.
  static func end(_ file: URL?) {
    guard let path = path(of: file) else { return }
    let time = ProcessEffects.current.clock.uptime
    uses.withLock { $0.end(path, at: time) }
  }

  /// Whether a downloaded file has no object any more.
  package static func isReleased(_ file: URL) -> Bool {
    uses.withLock { $0.isReleased(file.path) }
  }

  private static func removeDueFiles() {
    let time = ProcessEffects.current.clock.uptime
    for path in uses.withLock({ $0.takeDue(at: time) }) {
      // A file that was already removed is no error.
      try? FileManager.default.removeItem(atPath: path)
    }
  }

  private static func path(of file: URL?) -> String? {
    // Assets of an app's own files make no folder.
    guard let path = file?.path, path.hasPrefix(parent.path + "/"),
      path.hasPrefix(folder.path + "/")
    else { return nil }
    return path
  }

  // MARK: Removing

  /// Removes the downloaded files of records, complete or partial.
  ///
  /// Their assets have no file then. Files outside this folder are kept.
  package static func discard(filesOf records: [CKRecord]) {
    for record in records {
      for field in record.fields.values {
        for asset in field.value.assets {
          let url = asset.fileURL ?? place(named: asset.uuid)
          guard url.path.hasPrefix(folder.path + "/") else { continue }
          // A file that was already removed is no error.
          try? FileManager.default.removeItem(at: url)
          asset.forgetFile()
        }
      }
    }
  }
}
