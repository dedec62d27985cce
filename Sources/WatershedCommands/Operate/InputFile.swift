import CloudKitServer
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A file that a command reads, or standard input.
enum InputFile {
  static func text(_ path: String) throws -> String {
    String(decoding: try data(path), as: UTF8.self)
  }

  /// The content of anything that can be read: FIFOs too, as a shell makes of `<(command)`, and devices.
  ///
  /// `Data(contentsOf:)` reads regular files only.
  static func data(_ path: String) throws -> Data {
    if path == "-" { return FileHandle.standardInput.readDataToEndOfFile() }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(path, String(cString: strerror(errno))) }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    do {
      return try file.readToEnd() ?? Data()
    } catch {
      throw failure(path, error.systemReason)
    }
  }

  private static func failure(_ path: String, _ why: String) -> CommandFailure {
    CommandFailure(
      "UNREADABLE_FILE",
      what: "the file \(path) cannot be read",
      why: why,
      next: "check the path and its permissions"
    )
  }
}
