import Effects
import Foundation

/// A folder of this process alone, in a folder that all processes share.
///
/// The process holds a lock beside its folder. A folder whose lock is free is one of a process that has
/// ended: process numbers would not show that, since two containers that share the folder have the same
/// numbers.
package struct ProcessFolder: Sendable {
  /// The folder; the first file in it makes it.
  package let url: URL
  /// Held until the process ends; nil where the system can't lock files.
  private let lock: FileLock?

  private static let lockSuffix = ".lock"

  /// Takes a folder, and removes those of processes that have ended.
  ///
  /// `name` is called until it gives a name that is free.
  package init(in parent: URL, name: () -> UUID) {
    // Without its lock the folder is good too: then nothing removes it.
    try? FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
    Self.removeFoldersOfEndedProcesses(in: parent)
    while true {
      let url = parent.appendingPathComponent(name().uuidString, isDirectory: true)
      do {
        // Another process may take the new lock for one of a process that has ended.
        guard let lock = try FileLock.make(url.path + Self.lockSuffix) else { continue }
        self.lock = lock
      } catch {
        self.lock = nil
      }
      self.url = url
      return
    }
  }

  private static func removeFoldersOfEndedProcesses(in parent: URL) {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: parent.path)) ?? []
    // Other files of the parent are not this type's.
    for name in names
    where name.hasSuffix(lockSuffix)
      && UUID(uuidString: String(name.dropLast(lockSuffix.count))) != nil
    {
      let path = parent.appendingPathComponent(name).path
      // A lock that can't be opened or removed belongs to another user.
      guard let lock = try? FileLock.take(path) else { continue }
      try? FileManager.default.removeItem(atPath: String(path.dropLast(lockSuffix.count)))
      try? lock.remove()
    }
  }
}
