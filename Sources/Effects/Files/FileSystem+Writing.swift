import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension FileSystem {
  // MARK: Writing

  /// Writes a file, or replaces one in one step.
  package static func save(_ data: Data, to path: String) throws {
    try replace(path) { descriptor, draft in
      try data.withUnsafeBytes { try append($0, to: descriptor, draft) }
    }
  }

  /// Copies a file, replacing an existing one, in one step.
  package static func copy(_ source: String, over path: String) throws {
    guard let from = try descriptor(of: source, O_RDONLY, "read") else {
      throw failure("read", source, ENOENT, isWriting: false)
    }
    defer { close(from) }
    try replace(path) { descriptor, draft in
      try copy(from: from, source) { try append($0, to: descriptor, draft) }
    }
  }

  /// Gives a file that never changes a second name, or makes a copy where the file system has no
  /// links.
  package static func duplicate(_ source: String, as path: String) throws {
    while link(source, path) != 0 {
      switch errno {
      case EINTR: continue
      case EPERM, EXDEV, EMLINK, ENOSYS, EOPNOTSUPP: return try copy(source, over: path)
      case let number: throw failure("linked", path, number)
      }
    }
  }

  /// Renames a file, replacing an existing one, and synchronizes the folder.
  package static func move(_ source: String, over path: String) throws {
    while rename(source, path) != 0 {
      guard errno == EINTR else { throw failure("put in place", path, errno) }
    }
    try synchronizeFolder(of: path)
  }

  /// Renames a file, and synchronizes the folder; throws `fileWriteFileExists` if the new name is
  /// in use.
  package static func move(_ source: String, toFree path: String) throws {
    while link(source, path) != 0 {
      switch errno {
      case EINTR: continue
      case EPERM, EXDEV, EMLINK, ENOSYS, EOPNOTSUPP:
        // The file system has no hard links: a file that gets the name between the two calls would
        // be replaced.
        guard try !isThere(path) else { throw failure("put in place", path, EEXIST) }
        return try move(source, over: path)
      case let number: throw failure("put in place", path, number)
      }
    }
    try synchronizeFolder(of: path)
    try remove(source)
  }

  /// Makes an empty file under a name that is free; throws `fileWriteFileExists` where it is not.
  package static func makeEmptyFile(_ path: String) throws {
    let flags = O_WRONLY | O_CREAT | O_EXCL
    guard let file = try descriptor(of: path, flags, "created") else { return }
    close(file)
    try synchronizeFolder(of: path)
  }

  /// Makes a folder, and those above it, unless they are there.
  package static func makeFolder(_ path: String) throws {
    if try make(path) { return }
    let above = (path as NSString).deletingLastPathComponent
    guard !above.isEmpty, above != path else { throw failure("made", path, ENOENT) }
    try makeFolder(above)
    guard try make(path) else { throw failure("made", path, ENOENT) }
  }

  /// False where the folder above is missing.
  private static func make(_ folder: String) throws -> Bool {
    while mkdir(folder, 0o777) != 0 {
      switch errno {
      case EINTR: continue
      case ENOENT: return false
      case EEXIST:
        guard try look(at: folder) == .folder else { throw failure("made", folder, EEXIST) }
        return true
      case let number: throw failure("made", folder, number)
      }
    }
    return true
  }

  /// Brings a folder's entries to the disk, where the file system can.
  private static func synchronizeFolder(of path: String) throws {
    let folder = (path as NSString).deletingLastPathComponent
    let name = folder.isEmpty ? "." : folder
    guard let descriptor = try descriptor(of: name, O_RDONLY, "read") else { return }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP else {
      throw failure("brought to the disk", folder, errno)
    }
  }

  /// Has a draft written beside a place, which it takes when it is on the disk.
  private static func replace(
    _ path: String,
    _ body: (_ descriptor: Int32, _ draft: String) throws -> Void
  ) throws {
    guard let (descriptor, draft) = try makeDraft(of: path) else { return }
    // Not before it has its name: the draft is locked until then.
    defer { close(descriptor) }
    do {
      try body(descriptor, draft)
      // The file that is replaced has permissions that its owner chose.
      var former = stat()
      if stat(path, &former) == 0 { fchmod(descriptor, former.st_mode & 0o7777) }
      guard fsync(descriptor) == 0 else { throw failure("brought to the disk", draft, errno) }
      while rename(draft, path) != 0 {
        guard errno == EINTR else { throw failure("put in place", path, errno) }
      }
    } catch {
      // A draft that stays costs space and nothing else.
      _ = unlink(draft)
      throw error
    }
  }

  private static func append(
    _ bytes: UnsafeRawBufferPointer,
    to descriptor: Int32,
    _ path: String
  ) throws {
    var rest = bytes
    while !rest.isEmpty {
      let count = write(descriptor, rest.baseAddress, rest.count)
      if count < 0, errno == EINTR { continue }
      // A device that takes no byte and names no reason is full.
      guard count > 0 else { throw failure("written", path, count == 0 ? ENOSPC : errno) }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }
}
