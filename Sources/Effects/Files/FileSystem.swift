import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The calls to the file system by which stores and their large values are found, copied, replaced and
/// removed; what SQLite does with its own files is not among them.
///
/// Foundation's `fileExists` is false also where the file could not be looked for. Here a call either
/// knows or throws a Cocoa error that names the path, the call and the system's reason. A file is
/// written under another name, brought to the disk and renamed: a crash leaves the old one or the new.
package enum FileSystem {
  // MARK: Looking

  /// The kind of file at a path, at the end of symbolic links.
  package static func look(at path: String) throws -> FileAnswer {
    var found = stat()
    while stat(path, &found) != 0 {
      switch errno {
      case EINTR: continue
      case ENOTDIR: return .missing
      case ENOENT, ELOOP: return try isLink(path) ? .other : .missing
      case let number: throw failure("looked at", path, number, isWriting: false)
      }
    }
    switch found.st_mode & S_IFMT {
    case S_IFREG: return .file(size: Int(found.st_size))
    case S_IFDIR: return .folder
    default: return .other
    }
  }

  /// Whether anything has the name.
  package static func isThere(_ path: String) throws -> Bool { try look(at: path) != .missing }

  /// The size of a regular file; 0 where there is none.
  package static func size(of path: String) throws -> Int { try look(at: path).size }

  /// The version of a file; nil where there is none.
  package static func version(of path: String) throws -> FileVersion? {
    var found = stat()
    while stat(path, &found) != 0 {
      switch errno {
      case EINTR: continue
      case ENOENT, ENOTDIR: return nil
      case let number: throw failure("looked at", path, number, isWriting: false)
      }
    }
    #if canImport(Darwin)
    let time = found.st_mtimespec
    #else
    let time = found.st_mtim
    #endif
    return FileVersion(
      number: UInt64(found.st_ino),
      size: Int(found.st_size),
      seconds: Int(time.tv_sec),
      nanoseconds: Int(time.tv_nsec)
    )
  }

  /// Whether the permissions allow that a file, or the entries of a folder, are changed.
  package static func isWritable(_ path: String) throws -> Bool {
    while access(path, W_OK) != 0 {
      switch errno {
      case EINTR: continue
      case EACCES, EPERM, EROFS, ENOENT, ENOTDIR, ETXTBSY: return false
      case let number: throw failure("looked at", path, number, isWriting: false)
      }
    }
    return true
  }

  /// The names in a folder, sorted; none where there is no folder.
  package static func names(in folder: String) throws -> [String] {
    guard let stream = opendir(folder) else {
      if errno == ENOENT { return [] }
      throw failure("listed", folder, errno, isWriting: false)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw failure("listed", folder, errno, isWriting: false) }
        return names.sorted()
      }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
  }

  /// The bytes of a file; nil where there is none.
  package static func contents(of path: String) throws -> Data? {
    guard let descriptor = try descriptor(of: path, O_RDONLY, "read") else { return nil }
    defer { close(descriptor) }
    return try contents(of: descriptor, path)
  }

  /// The bytes of an open file from its position on.
  static func contents(of descriptor: Int32, _ path: String) throws -> Data {
    var data = Data()
    try copy(from: descriptor, path) { data.append(contentsOf: $0) }
    return data
  }

  /// The size of an open file; nil where it is no regular file.
  static func size(of descriptor: Int32, _ path: String) throws -> Int? {
    var found = stat()
    while fstat(descriptor, &found) != 0 {
      guard errno == EINTR else { throw failure("looked at", path, errno, isWriting: false) }
    }
    return found.st_mode & S_IFMT == S_IFREG ? Int(found.st_size) : nil
  }

  private static func isLink(_ path: String) throws -> Bool {
    var found = stat()
    guard lstat(path, &found) == 0 else {
      if errno == ENOENT || errno == ENOTDIR { return false }
      throw failure("looked at", path, errno, isWriting: false)
    }
    return found.st_mode & S_IFMT == S_IFLNK
  }

  // MARK: Removing

  /// Removes a file; true where there was one.
  @discardableResult
  package static func remove(_ path: String) throws -> Bool {
    while unlink(path) != 0 {
      switch errno {
      case EINTR: continue
      case ENOENT, ENOTDIR: return false
      case let number: throw failure("removed", path, number)
      }
    }
    return true
  }

  /// Removes a folder and all that is in it; symbolic links are not followed.
  package static func removeFolder(_ path: String) throws {
    for name in try names(in: path) {
      let item = "\(path)/\(name)"
      var found = stat()
      guard lstat(item, &found) == 0 else {
        if errno == ENOENT { continue }
        throw failure("looked at", item, errno, isWriting: false)
      }
      if found.st_mode & S_IFMT == S_IFDIR {
        try removeFolder(item)
      } else {
        try remove(item)
      }
    }
    while rmdir(path) != 0 {
      switch errno {
      case EINTR: continue
      case ENOENT: return
      case let number: throw failure("removed", path, number)
      }
    }
  }

  /// Removes a folder unless something is in it.
  package static func removeEmptyFolder(_ path: String) throws {
    while rmdir(path) != 0 {
      switch errno {
      case EINTR: continue
      case ENOENT, ENOTEMPTY, EEXIST: return
      case let number: throw failure("removed", path, number)
      }
    }
  }

  // MARK: Errors

  /// The Cocoa error of a call; `action` completes "The file … could not be …".
  static func failure(
    _ action: String,
    _ path: String,
    _ number: Int32,
    isWriting: Bool = true
  ) -> CocoaError {
    let code: CocoaError.Code =
      switch number {
      case ENOENT: isWriting ? .fileNoSuchFile : .fileReadNoSuchFile
      case EACCES, EPERM: isWriting ? .fileWriteNoPermission : .fileReadNoPermission
      case EEXIST: .fileWriteFileExists
      case ENOSPC, EDQUOT: .fileWriteOutOfSpace
      case EROFS: .fileWriteVolumeReadOnly
      default: isWriting ? .fileWriteUnknown : .fileReadUnknown
      }
    let reason = String(cString: strerror(number))
    return CocoaError(
      code,
      userInfo: [
        NSFilePathErrorKey: path,
        NSLocalizedDescriptionKey: "The file \(path) could not be \(action): \(reason).",
        NSUnderlyingErrorKey: NSError(domain: NSPOSIXErrorDomain, code: Int(number)),
      ]
    )
  }

  /// Opens a file; nil where a file that is only read is not there.
  static func descriptor(
    of path: String,
    _ flags: Int32,
    _ action: String
  ) throws -> Int32? {
    let isWriting = flags & O_ACCMODE != O_RDONLY
    while true {
      let descriptor = open(path, flags | O_CLOEXEC, 0o666)
      if descriptor >= 0 { return descriptor }
      switch errno {
      case EINTR: continue
      case ENOENT where !isWriting, ENOTDIR where !isWriting: return nil
      case let number: throw failure(action, path, number, isWriting: isWriting)
      }
    }
  }

  /// Reads an open file to its end.
  static func copy(
    from descriptor: Int32,
    _ path: String,
    to body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = read(descriptor, buffer.baseAddress, buffer.count)
      if count > 0 {
        try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      } else if count == 0 {
        return
      } else if errno != EINTR {
        throw failure("read", path, errno, isWriting: false)
      }
    }
  }
}
