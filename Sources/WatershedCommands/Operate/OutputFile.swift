import CloudKitServer
import Effects
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A file that a command writes under a name that the operator gave.
///
/// A regular file is replaced as a whole, so that a failure leaves the former content. Of everything else the
/// name is kept: a rename over a device, a FIFO or a link would put a regular file in its place, for the whole
/// machine.
enum OutputFile {
  /// Writes the text, to the standard output itself where the path leads to it.
  static func write(_ text: String, to path: String) throws {
    if isStandardOutput(path) { return try StandardOutput.write(text) }
    do {
      try write(Data(text.utf8), to: path)
    } catch {
      throw CommandFailure(
        "UNWRITABLE_FILE",
        what: "the file \(path) cannot be written",
        why: error.systemReason,
        next: "check that the folder exists and is writable"
      )
    }
  }

  private static func write(_ data: Data, to path: String) throws {
    if let file = try replaceable(path) {
      return try data.write(to: URL(fileURLWithPath: file), options: .atomic)
    }
    // A link to a missing file creates that file, as a shell's redirection does.
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else { throw Self.failure(errno, path) }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try file.write(contentsOf: data)
    try file.close()
  }

  /// The path of a regular or missing file, at the end of the links; nil for anything else.
  private static func replaceable(_ path: String) throws -> String? {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      guard errno == ENOENT else { throw failure(errno, path) }
      return path
    }
    if isRegular(status) { return path }
    guard status.st_mode & S_IFMT == S_IFLNK, let target = realpath(path, nil) else { return nil }
    defer { free(target) }
    // What a link below /proc names may have no path any more, or never had one.
    guard lstat(target, &status) == 0, isRegular(status) else { return nil }
    return String(cString: target)
  }

  /// Whether the name leads to what the standard output is, such as /dev/stdout.
  private static func isStandardOutput(_ path: String) -> Bool {
    var (named, own) = (stat(), stat())
    return stat(path, &named) == 0 && fstat(STDOUT_FILENO, &own) == 0
      && named.st_dev == own.st_dev && named.st_ino == own.st_ino
  }

  private static func isRegular(_ status: stat) -> Bool { status.st_mode & S_IFMT == S_IFREG }

  private static func failure(_ code: Int32, _ path: String) -> CocoaError {
    CocoaError(
      .fileWriteUnknown,
      userInfo: [
        NSFilePathErrorKey: path,
        NSUnderlyingErrorKey: NSError(domain: NSPOSIXErrorDomain, code: Int(code)),
      ]
    )
  }
}
