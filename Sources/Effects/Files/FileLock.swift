import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A lock on a file of its own, which the system releases when the process ends, however it ends.
///
/// The lock is that of `flock`: it excludes other processes and other locks of this process alike.
package final class FileLock: Sendable {
  package let path: String
  private let descriptor: Int32

  private init(path: String, descriptor: Int32) {
    self.path = path
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }

  /// Makes the file where it is missing and locks it; nil where another holds the lock.
  package static func make(_ path: String) throws -> FileLock? {
    try lock(path, O_RDWR | O_CREAT)
  }

  /// Locks a file that is there; nil where it is missing or another holds the lock.
  package static func take(_ path: String) throws -> FileLock? {
    try lock(path, O_RDONLY)
  }

  private static func lock(_ path: String, _ flags: Int32) throws -> FileLock? {
    while true {
      guard let descriptor = try FileSystem.descriptor(of: path, flags, "locked") else {
        return nil
      }
      let lock = FileLock(path: path, descriptor: descriptor)
      while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
        switch errno {
        case EINTR: continue
        case EWOULDBLOCK: return nil
        case let number: throw FileSystem.failure("locked", path, number)
        }
      }
      // The last holder may have removed the file after it was opened here, and then another process
      // may make one of the same name and lock that.
      if try lock.hasName { return lock }
    }
  }

  /// Whether the path still leads to the locked file.
  private var hasName: Bool {
    get throws {
      var own = stat()
      guard fstat(descriptor, &own) == 0 else {
        throw FileSystem.failure("looked at", path, errno, isWriting: false)
      }
      var named = stat()
      while stat(path, &named) != 0 {
        switch errno {
        case EINTR: continue
        case ENOENT, ENOTDIR: return false
        case let number: throw FileSystem.failure("looked at", path, number, isWriting: false)
        }
      }
      return own.st_dev == named.st_dev && own.st_ino == named.st_ino
    }
  }

  /// Removes the file while it is still locked.
  package func remove() throws { try FileSystem.remove(path) }
}
