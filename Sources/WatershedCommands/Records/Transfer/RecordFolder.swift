import CloudKitWebServices
import Foundation

/// Records of a database in a folder: one in each line of a file, and their files beside it.
///
/// A line is a record as `records get` prints it, with its zone, and with the path of a file in this
/// folder as the `downloadURL` of an asset.
struct RecordFolder {
  let url: URL

  var records: URL { url.appendingPathComponent("records.ndjson") }
  /// The zones, one in each line; a zone without records is here alone.
  var zones: URL { url.appendingPathComponent("zones.ndjson") }
  static let assetFolder = "assets"

  /// The file of an asset; nil for a URL elsewhere.
  func file(of path: String) throws -> URL? {
    guard path.hasPrefix(Self.assetFolder + "/") else { return nil }
    guard !path.split(ascii: "/").contains("..") else {
      throw CommandFailure(
        "UNREADABLE_FILE",
        what: "a file was not read",
        why: "\(path) is outside of the folder",
        next: "export the records again"
      )
    }
    return url.appendingPathComponent(path)
  }
}

/// The lines of a file, one at a time.
struct LineReader {
  private let handle: FileHandle
  private var rest = Data()
  /// The number of the line that was read last; empty ones count.
  private(set) var number = 0

  init(_ file: URL) throws {
    do {
      handle = try FileHandle(forReadingFrom: file)
    } catch {
      throw CommandFailure(
        "UNREADABLE_FILE",
        what: "the records cannot be read",
        why: "\(file.path): \(error.localizedDescription)",
        next: "name a folder that `watershed records export` wrote"
      )
    }
  }

  mutating func next() throws -> Data? {
    while true {
      if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        let line = Data(rest[rest.startIndex..<end])
        rest = rest[rest.index(after: end)...]
        number += 1
        if !line.isEmpty { return line }
      } else if let piece = try handle.read(upToCount: 1 << 20), !piece.isEmpty {
        rest = Data(rest) + piece
      } else {
        defer { rest = Data() }
        number += 1
        return rest.isEmpty ? nil : Data(rest)
      }
    }
  }

  func close() { try? handle.close() }
}

/// Appends lines to a new file that only its owner can read.
struct LineFile {
  private let handle: FileHandle

  init(_ file: URL) throws {
    let isMade = FileManager.default.createFile(
      atPath: file.path,
      contents: nil,
      attributes: [.posixPermissions: 0o600]
    )
    guard isMade else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
    handle = try FileHandle(forWritingTo: file)
  }

  func write(_ line: Data) throws {
    try handle.write(contentsOf: line + Data("\n".utf8))
  }

  func close() throws {
    try handle.synchronize()
    try handle.close()
  }
}
