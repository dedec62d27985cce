import Foundation

/// What is at the place of a store.
///
/// A store's URL may name anything: `/dev/null`, which asks for a store without a file, a device, a
/// named pipe, a folder. Only a regular file is ever removed or replaced; a process with the rights
/// for more would otherwise remove a device of the machine.
package enum StorePlace: Sendable {
  /// Nothing: a file can be made.
  case free
  /// A regular file, or a symbolic link to one.
  case file
  /// The null device, or a link to it: a store there has no file.
  case memory
  /// A folder, another device, a pipe, a socket, or a link that leads nowhere.
  case other

  /// Looks at a place without opening what is there.
  package init(_ url: URL) {
    if Self.isNullDevice(url.path) {
      self = .memory
      return
    }
    var found = stat()
    guard stat(url.path, &found) == 0 else {
      // A link that leads nowhere is there itself.
      self = lstat(url.path, &found) == 0 ? .other : .free
      return
    }
    switch found.st_mode & S_IFMT {
    case S_IFREG: self = .file
    case S_IFCHR: self = Self.isNullDevice(found.st_rdev) ? .memory : .other
    default: self = .other
    }
  }

  private static func isNullDevice(_ path: String) -> Bool {
    URL(fileURLWithPath: path).standardizedFileURL.path == "/dev/null"
  }

  private static func isNullDevice(_ device: dev_t) -> Bool {
    var null = stat()
    return stat("/dev/null", &null) == 0 && null.st_rdev == device
  }

  /// Whether a file can be removed at a place or put there; throws where something else is there.
  static func hasFile(at url: URL) throws -> Bool {
    switch StorePlace(url) {
    case .free, .file: return true
    case .memory: return false
    case .other:
      throw StoreError(
        .fileWriteUnknown,
        "What is at \(url.path) is no regular file, so it is neither removed nor replaced.",
        remedy: "Choose another place for the store.",
        context: [NSFilePathErrorKey: url.path]
      )
    }
  }
}
