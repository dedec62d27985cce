import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The lock of a server's data folder, which one process holds at a time.
///
/// Opening a service removes unused uploads; while another server runs, that would remove files
/// that its clients are about to save.
package final class DataFolderLock: Sendable {
  package enum Failure: Error, Hashable, Sendable {
    /// Another process holds the lock.
    case inUse
    /// The folder or its lock file cannot be created, with the system's reason.
    case unwritable(String)
  }

  private static let fileName = "lock"

  private let descriptor: Int32

  /// Creates the folder, if there is none, for its owner alone, and takes its lock.
  package init(creating folder: URL) throws(Failure) {
    let place = folder.appendingPathComponent(Self.fileName)
    do {
      // Other users of this machine get no access; an existing folder keeps its mode.
      try PrivateFile.makeFolder(folder)
    } catch {
      throw .unwritable(error.systemReason)
    }
    PrivateFile.make(place.path)
    let lock = place.path
    // No link: root would create or open the file of its owner's choice.
    descriptor = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      let isLink = errno == ELOOP
      throw .unwritable(isLink ? "\(lock) is a link: remove it" : String(cString: strerror(errno)))
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      _ = close(descriptor)
      throw code == EWOULDBLOCK ? .inUse : .unwritable(String(cString: strerror(code)))
    }
  }

  /// Another process may take the lock from here on.
  package func release() {
    _ = close(descriptor)
  }

  /// Whether another process holds the lock; creates nothing.
  package static func isHeld(in folder: URL) -> Bool {
    let path = folder.appendingPathComponent(fileName).path
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    // Closing releases the shared lock, which is held for this one question.
    defer { _ = close(descriptor) }
    return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
  }
}
