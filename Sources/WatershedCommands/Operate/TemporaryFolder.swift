import Effects
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A folder of this process for a backup that comes from a bucket or goes there, or for records on their way to
/// another database; its owner's alone, since a backup holds the keys, and records are decrypted.
///
/// Ctrl-C removes it. A killed process leaves its folder, with the lock of it free: the next command of this user
/// removes it.
enum TemporaryFolder {
  /// What the folder is for, as a part of its name.
  enum Use: String, CaseIterable {
    case backup = "watershed-backup-"
    case copy = "watershed-copy-"
  }

  private static let lockName = "lock"
  /// The folders that this process has now.
  private static let used = Mutex<Set<URL>>([])

  /// Runs the body with the path of a folder to create.
  static func with<Result>(_ use: Use, _ body: (URL) async throws -> Result) async throws -> Result
  {
    let place = FileManager.default.temporaryDirectory
    removeLeft(in: place)
    let name = use.rawValue + UUID().uuidString
    // Locked before it has its name: another command would otherwise take it for one that was left.
    let draft = place.appendingPathComponent("\(name).new")
    let parent = place.appendingPathComponent(name)
    try FileManager.default.createDirectory(
      at: draft,
      withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700]
    )
    guard let lock = try FileLock.make(draft.appendingPathComponent(lockName).path) else {
      throw CocoaError(.fileLocking)
    }
    try FileManager.default.moveItem(at: draft, to: parent)
    used.withLock { _ = $0.insert(parent) }
    defer {
      try? FileManager.default.removeItem(at: parent)
      used.withLock { _ = $0.remove(parent) }
      withExtendedLifetime(lock) {}
    }
    return try await body(parent.appendingPathComponent("content"))
  }

  /// Removes the folders of this process, which is about to end.
  static func removeOwn() {
    // A file that is written meanwhile can make one attempt fail; a later command removes what is left.
    for folder in used.withLock({ $0 })
    where (try? FileManager.default.removeItem(at: folder)) == nil {
      try? FileManager.default.removeItem(at: folder)
    }
  }

  /// Removes the folders that killed commands of this user have left.
  static func removeLeft(in place: URL) {
    let manager = FileManager.default
    for name in (try? manager.contentsOfDirectory(atPath: place.path)) ?? []
    where Use.allCases.contains(where: { name.hasPrefix($0.rawValue) }) && !name.hasSuffix(".new") {
      let folder = place.appendingPathComponent(name)
      var found = stat()
      guard lstat(folder.path, &found) == 0, found.st_mode & S_IFMT == S_IFDIR,
        found.st_uid == geteuid(),
        let lock = try? FileLock.take(folder.appendingPathComponent(lockName).path)
      else { continue }
      // Another user's folder may not be removable, and a later command removes the rest.
      try? manager.removeItem(at: folder)
      withExtendedLifetime(lock) {}
    }
  }
}
