import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A file beside the database with the number of transactions that the database has committed,
/// which the database also contains.
///
/// A database with a smaller number than the file was replaced by an older copy. The file is
/// written after the commit and not synchronized: after a crash its number may be smaller than the
/// database's, never greater.
final class CommitTally: Sendable {
  private let descriptor: Int32

  /// The file's name is that of an earlier version, which counted only how often the database was
  /// opened.
  private static func file(in folder: URL) -> URL { folder.appendingPathComponent("openings") }

  /// The number in the file; zero if there is none.
  ///
  /// Throws for a file that cannot be read: with zero, an older copy of the database would not be noticed.
  static func read(in folder: URL) throws -> Int64 {
    let file = file(in: folder)
    guard try ForeignFile.isThere(file) else { return 0 }
    return Int64(String(decoding: try Data(contentsOf: file), as: UTF8.self)) ?? 0
  }

  /// Creates the file with a first number.
  init(in folder: URL, _ number: Int64) throws {
    let file = Self.file(in: folder)
    try PrivateFile.write(Data(Self.text(number)), to: file)
    descriptor = open(file.path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
  }

  deinit { close(descriptor) }

  /// All numbers have the same length, so that several processes can overwrite them in place.
  private static func text(_ number: Int64) -> [UInt8] {
    let digits = Array(String(number).utf8)
    return Array(repeating: UInt8(ascii: "0"), count: max(0, 19 - digits.count)) + digits
  }

  func note(_ number: Int64) {
    let text = Self.text(number)
    // A failed write makes a later comparison weaker, but no commit wrong.
    _ = pwrite(descriptor, text, text.count, 0)
  }
}
