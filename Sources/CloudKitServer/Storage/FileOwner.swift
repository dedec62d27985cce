import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The user and the group that own a file.
package struct FileOwner: Hashable, Sendable {
  package var user: UInt32
  package var group: UInt32

  /// The owner of a file or folder, not of what a link leads to; nil if it is missing.
  package init?(ofItemAt path: String) {
    var found = stat()
    guard lstat(path, &found) == 0 else { return nil }
    self.init(found)
  }

  /// The owner of a folder, to which a link may lead: systemd's `/var/lib/watershed` is one.
  package init?(ofFolder folder: URL) {
    var found = stat()
    guard stat(folder.path, &found) == 0 else { return nil }
    self.init(found)
  }

  init(_ found: stat) {
    (user, group) = (found.st_uid, found.st_gid)
  }

  /// Gives a file that this process has just created to the owner.
  ///
  /// A descriptor, not a path: the owner of the folder could have put a link to another file there meanwhile.
  func take(_ descriptor: Int32) -> Bool { fchown(descriptor, user, group) == 0 }
}
