import Foundation

/// Writes what arrives to a file, piece by piece.
package struct FileSink {
  private let handle: FileHandle
  /// How many bytes the file has.
  package private(set) var count: Int64

  /// Opens a file: at its end to go on with it, or empty.
  package init(_ url: URL, appending: Bool) throws {
    let files = FileManager.default
    if !files.fileExists(atPath: url.path) {
      try files.createDirectory(
        at: url.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try Data().write(to: url)
    }
    handle = try FileHandle(forWritingTo: url)
    if appending {
      count = Int64(try handle.seekToEnd())
    } else {
      try handle.truncate(atOffset: 0)
      count = 0
    }
  }

  /// Writes a piece.
  package mutating func write(_ piece: Data) throws {
    try handle.write(contentsOf: piece)
    count += Int64(piece.count)
  }

  /// Ends the file.
  package func close() throws { try handle.close() }
}
