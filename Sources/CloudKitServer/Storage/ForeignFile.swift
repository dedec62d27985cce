import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A file or folder of the data that is there, and that the user of this process may not read.
///
/// Foundation reports a denied file as missing: a server that believed it would begin another key, another count of
/// transactions or another store of files.
package struct ForeignFile: Error, Hashable, CustomStringConvertible {
  var path: String
  /// The folder of the file.
  var folder: String
  /// The system's message.
  var reason: String

  package var description: String {
    "\(path) cannot be read: \(reason). If a command of another user has made it, give it to the owner of "
      + "its folder: sudo \(Self.remedy(folder))"
  }

  /// The command that gives all that is in a folder to the folder's owner; a slash, since the folder may be a link.
  package static func remedy(_ folder: String) -> String {
    "chown -R --reference=\(folder)/ \(folder)/"
  }

  /// Whether a file or folder is there; throws if that cannot be known, or if it cannot be read.
  package static func isThere(_ item: URL) throws(ForeignFile) -> Bool {
    var found = stat()
    if stat(item.path, &found) == 0 {
      let isFolder = found.st_mode & S_IFMT == S_IFDIR
      if access(item.path, isFolder ? R_OK | X_OK : R_OK) == 0 { return true }
    } else if errno == ENOENT {
      return false
    }
    throw ForeignFile(
      path: item.path,
      folder: item.deletingLastPathComponent().path,
      reason: String(cString: strerror(errno))
    )
  }
}
