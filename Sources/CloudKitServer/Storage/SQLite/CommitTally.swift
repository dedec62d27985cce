import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A file beside the database that says how many transactions the database has committed, as the
/// database itself does.
///
/// A database that knows of fewer transactions than its neighbour was replaced by an older copy. The
/// neighbour is written after the commit and without waiting for the disk: after a crash it may know
/// of fewer transactions than the database, never of more.
final class CommitTally: Sendable {
  private let descriptor: Int32

  /// The name dates from when only the openings of the database were counted.
  private static func file(in folder: URL) -> URL { folder.appendingPathComponent("openings") }

  /// What the file says; zero where there is none.
  static func read(in folder: URL) -> Int64 {
    let text = try? String(contentsOf: file(in: folder), encoding: .utf8)
    return text.flatMap { Int64($0) } ?? 0
  }

  /// Makes the file with a first number.
  init(in folder: URL, _ number: Int64) throws {
    let file = Self.file(in: folder)
    try PrivateFile.write(Data(Self.text(number)), to: file)
    descriptor = open(file.path, O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
  }

  deinit { close(descriptor) }

  /// All numbers have as many digits: one is written over the other, also by several processes.
  private static func text(_ number: Int64) -> [UInt8] {
    let digits = Array(String(number).utf8)
    return Array(repeating: UInt8(ascii: "0"), count: max(0, 19 - digits.count)) + digits
  }

  func note(_ number: Int64) {
    let text = Self.text(number)
    // A number that is not written makes a later comparison weaker, and no commit wrong.
    _ = pwrite(descriptor, text, text.count, 0)
  }
}
