import Foundation

/// The bytes of a file in chunks, so that reading a file of any size needs the memory of one chunk.
package struct FileChunks: AsyncSequence, Sendable {
  /// One chunk.
  package typealias Element = Data

  /// The most bytes of a chunk.
  package static let pieceSize = 256 << 10

  private let url: URL
  private let size: Int64
  private let progress: @Sendable (Int64) -> Void

  /// Creates a sequence of a file of `size` bytes; `progress` receives the number of bytes read so
  /// far.
  package init(
    of url: URL,
    size: Int64,
    progress: @escaping @Sendable (Int64) -> Void = { _ in }
  ) {
    self.url = url
    self.size = size
    self.progress = progress
  }

  /// Reads the chunks in order.
  package struct AsyncIterator: AsyncIteratorProtocol {
    private let chunks: FileChunks
    private var handle: FileHandle?
    private var count: Int64 = 0

    fileprivate init(_ chunks: FileChunks) {
      self.chunks = chunks
    }

    /// The next chunk; throws if the file's size differs from the expected one.
    package mutating func next() async throws -> Data? {
      let handle = try self.handle ?? FileHandle(forReadingFrom: chunks.url)
      self.handle = handle
      let piece = try handle.read(upToCount: FileChunks.pieceSize) ?? Data()
      count += Int64(piece.count)
      guard count <= chunks.size, !piece.isEmpty || count == chunks.size else {
        throw CKError(
          .assetFileModified,
          "The file \(chunks.url.path) changed while it was uploaded."
        )
      }
      guard !piece.isEmpty else {
        try handle.close()
        return nil
      }
      chunks.progress(count)
      return piece
    }
  }

  package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
