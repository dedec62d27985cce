import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Files and folders that only their owner can read, also in a folder that other users can read.
///
/// What root creates in another user's folder is that user's; see ``OpenFolder``.
package enum PrivateFile {
  static var attributes: [FileAttributeKey: Any] { [.posixPermissions: 0o600] }
  static var folderAttributes: [FileAttributeKey: Any] { [.posixPermissions: 0o700] }

  /// Creates an empty file if there is none; if that fails, the following write reports why.
  static func make(_ path: String) {
    _ = try? create(URL(fileURLWithPath: path)).close()
  }

  /// Creates a file, which must not exist, and opens it for writing.
  static func create(_ file: URL) throws -> FileHandle {
    FileHandle(fileDescriptor: try descriptor(creating: file), closeOnDealloc: true)
  }

  /// Creates a file, which must not exist; the caller closes its descriptor.
  package static func descriptor(creating file: URL) throws -> Int32 {
    try OpenFolder(file.deletingLastPathComponent()).create(file)
  }

  /// Creates a folder, and the missing ones above it.
  static func makeFolder(_ folder: URL) throws {
    guard !isFolder(folder) else { return }
    let parent = folder.deletingLastPathComponent()
    try makeFolder(parent)
    do {
      try OpenFolder(parent).makeFolder(folder)
    } catch let error as CocoaError where error.code == .fileWriteFileExists {
      // Another process was first.
      guard isFolder(folder) else { throw error }
    }
  }

  private static func isFolder(_ place: URL) -> Bool {
    var found = stat()
    return stat(place.path, &found) == 0 && found.st_mode & S_IFMT == S_IFDIR
  }

  /// Writes a file atomically, unreadable for other users from the first byte on.
  package static func write(_ data: Data, to file: URL) throws {
    let folder = try OpenFolder(file.deletingLastPathComponent())
    let partial = file.appendingPathExtension("partial")
    folder.remove(partial)
    let handle = FileHandle(fileDescriptor: try folder.create(partial), closeOnDealloc: true)
    try handle.write(contentsOf: data)
    // Before it has its name: the file that it replaces may be another user's in a folder of root.
    if let heir = folder.heir(of: file), !heir.take(handle.fileDescriptor) {
      throw failure(partial)
    }
    try handle.synchronize()
    try handle.close()
    try folder.rename(partial, to: file)
  }

  /// Copies a file; the copy has no permissions of the source.
  static func copy(_ source: URL, to file: URL) throws {
    let from = try FileHandle(forReadingFrom: source)
    defer { try? from.close() }
    let to = try create(file)
    while let chunk = try from.read(upToCount: 1_048_576), !chunk.isEmpty {
      try to.write(contentsOf: chunk)
    }
    try to.close()
  }

  /// The error of the system call that has just failed.
  static func failure(_ file: URL) -> any Error {
    let reason = POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    return CocoaError(
      reason.code == .EEXIST ? .fileWriteFileExists : .fileWriteUnknown,
      userInfo: [NSFilePathErrorKey: file.path, NSUnderlyingErrorKey: reason]
    )
  }
}
