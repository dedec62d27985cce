import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A file or folder that exists, or may exist, and that the user of this process may not read.
package struct UnreadablePlace: Error, Hashable, CustomStringConvertible {
  package var path: String
  /// The system's message.
  package var reason: String

  package var description: String { "\(path) cannot be read: \(reason)" }

  /// Throws if the user of this process may not read the file, or may not list and enter the folder.
  ///
  /// Without this check a folder of another user looks like an empty one.
  package static func check(_ place: URL) throws(UnreadablePlace) {
    guard access(place.path, place.hasDirectoryPath ? R_OK | X_OK : R_OK) != 0 else { return }
    let code = errno
    // A missing place is not denied.
    guard code == EACCES || code == EPERM else { return }
    throw UnreadablePlace(path: place.path, reason: String(cString: strerror(code)))
  }
}

extension Error {
  /// The system's message for an error of a file, without Foundation's text around it and without a
  /// full stop.
  package var systemReason: String {
    var innermost: any Error = self
    while let inner = (innermost as NSError).userInfo[NSUnderlyingErrorKey] as? any Error {
      innermost = inner
    }
    let last = innermost as NSError
    if last.domain == NSPOSIXErrorDomain { return String(cString: strerror(Int32(last.code))) }
    let text = (self as NSError).localizedDescription
    return text.hasSuffix(".") ? String(text.dropLast()) : text
  }
}
