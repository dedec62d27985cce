import Effects
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A folder of this process for a backup that comes from a bucket, or goes there; its owner's alone, since
/// a backup holds the keys.
///
/// A killed process leaves its folder, with the lock of it free: the next command of this user removes it.
enum TemporaryBackup {
  private static let prefix = "watershed-backup-"
  private static let lockName = "lock"

  static func use<Result>(_ body: (URL) async throws -> Result) async throws -> Result {
    let place = FileManager.default.temporaryDirectory
    removeLeft(in: place)
    let name = prefix + UUID().uuidString
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
    defer {
      try? FileManager.default.removeItem(at: parent)
      withExtendedLifetime(lock) {}
    }
    return try await body(parent.appendingPathComponent("backup"))
  }

  /// Removes the folders that killed commands of this user have left.
  static func removeLeft(in place: URL) {
    let manager = FileManager.default
    for name in (try? manager.contentsOfDirectory(atPath: place.path)) ?? []
    where name.hasPrefix(prefix) && !name.hasSuffix(".new") {
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
