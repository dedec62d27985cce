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
  /// The system's message.
  var reason: String
  /// The command that gives the file to the server's user.
  var remedy: String

  package var description: String {
    "\(path) cannot be read: \(reason). If a command of another user has made it, give it to the server's user: "
      + "sudo \(remedy)"
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
    let reason = String(cString: strerror(errno))
    let folder = item.deletingLastPathComponent()
    let remedy = DataOwner(of: folder)?.remedy(for: [item.path])
    throw ForeignFile(
      path: item.path,
      reason: reason,
      remedy: remedy ?? "chown -R --reference=\(folder.path)/ \(item.path)"
    )
  }
}
