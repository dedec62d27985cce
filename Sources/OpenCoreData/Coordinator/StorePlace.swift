import Effects
import Foundation

/// The kind of file at the place of a store.
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

  /// Examines a location without opening its file; throws if that fails.
  package init(_ url: URL) throws {
    if Self.isInMemory(url) {
      self = .memory
      return
    }
    switch try FileSystem.look(at: url.path) {
    case .missing: self = .free
    case .file: self = .file
    case .folder: self = .other
    case .other: self = Self.isLinkToNullDevice(url.path) ? .memory : .other
    }
  }

  /// Whether a location stands for a store without a file: the null device, or a name below it,
  /// `/dev/null/Notes.sqlite`, by which apps keep their stores apart.
  static func isInMemory(_ url: URL) -> Bool {
    let path = URL(fileURLWithPath: url.path).standardizedFileURL.path
    return path == "/dev/null" || path.hasPrefix("/dev/null/")
  }

  private static func isLinkToNullDevice(_ path: String) -> Bool {
    var found = stat()
    var null = stat()
    return stat(path, &found) == 0 && found.st_mode & S_IFMT == S_IFCHR
      && stat("/dev/null", &null) == 0 && null.st_rdev == found.st_rdev
  }

  /// Whether a file can be removed at a place or put there; throws where something else is there.
  static func hasFile(at url: URL) throws -> Bool {
    switch try StorePlace(url) {
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

  /// The suffixes of the files that SQLite stores next to a database.
  static let logSuffixes = ["-wal", "-shm", "-journal"]

  /// Whether one of these files has contents.
  static func hasLog(of file: URL) throws -> Bool {
    try logSuffixes.contains { try FileSystem.size(of: file.path + $0) > 0 }
  }

  /// Whether a process has crashed and left a log: until that is read, no other connection may open it.
  static func hasUnreadLog(at file: URL) throws -> Bool {
    try FileSystem.size(of: file.path + "-wal") > 0 && !FileSystem.isThere(file.path + "-shm")
  }

  /// Removes SQLite's log and index of a file; the log must be checkpointed or disposable.
  static func removeLog(of file: URL) throws {
    for suffix in logSuffixes { try FileSystem.remove(file.path + suffix) }
  }

  /// Removes a store's file, its log and its large values, as far as that goes; what cannot be removed
  /// costs space and nothing else.
  static func discardStore(at url: URL) {
    let folder = ExternalFolder(store: url)
    let share = try? folder.share()
    discardFile(at: url)
    if let share { try? folder.remove(share) }
  }

  /// Removes a store's file and its log, as far as that goes.
  static func discardFile(at url: URL) {
    for suffix in [""] + logSuffixes { _ = try? FileSystem.remove(url.path + suffix) }
  }
}
