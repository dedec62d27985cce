import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The drafts that a saved file is written as, `.NAME-UUID` beside it.
///
/// A process locks a draft as long as it writes it. A draft without a lock was left by a process that
/// was killed.
extension FileSystem {
  private static let nameLength = 36

  static func draftPath(of path: String) -> String {
    let place = path as NSString
    return (place.deletingLastPathComponent as NSString)
      .appendingPathComponent(".\(place.lastPathComponent)-\(UUID().uuidString)")
  }

  /// Makes and locks a draft for a place; nil where the folder no longer exists.
  static func makeDraft(of path: String) throws -> (descriptor: Int32, path: String)? {
    while true {
      let draft = draftPath(of: path)
      guard let descriptor = try descriptor(of: draft, O_WRONLY | O_CREAT | O_EXCL, "made") else {
        return nil
      }
      var found = stat()
      // Without locks, as on some file systems, a draft that is left is not removed.
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK,
        fstat(descriptor, &found) != 0 || found.st_nlink > 0
      else {
        // Before the lock, another process took the draft for one that was left, and removes it.
        close(descriptor)
        continue
      }
      return (descriptor, draft)
    }
  }

  /// Removes the drafts that killed processes left, of one file or of all files of a folder; drafts that
  /// cannot be removed stay.
  package static func removeDrafts(in folder: String, of name: String? = nil) {
    // A draft that cannot be listed or removed costs space and nothing else.
    guard let names = try? names(in: folder) else { return }
    for draft in names {
      guard let owner = file(ofDraft: draft), name == nil || name == owner else { continue }
      guard let lock = try? FileLock.take("\(folder)/\(draft)") else { continue }
      try? lock.remove()
    }
  }

  /// The name of the file that a draft was written for; nil if the name is not a draft's.
  private static func file(ofDraft name: String) -> String? {
    let (owner, identifier) = (name.dropLast(nameLength + 1).dropFirst(), name.suffix(nameLength))
    guard name.first == ".", !owner.isEmpty, name.dropLast(nameLength).last == "-",
      UUID(uuidString: String(identifier)) != nil
    else { return nil }
    return String(owner)
  }
}
