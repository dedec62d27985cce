import Foundation

/// Writes a download to a file, chunk by chunk.
package struct FileSink {
  private let handle: FileHandle
  /// The size of the file in bytes.
  package private(set) var count: Int64

  /// Opens a file, either to append to it or emptied.
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

  /// Appends a chunk.
  package mutating func write(_ piece: Data) throws {
    try handle.write(contentsOf: piece)
    count += Int64(piece.count)
  }

  /// Closes the file.
  package func close() throws { try handle.close() }
}
