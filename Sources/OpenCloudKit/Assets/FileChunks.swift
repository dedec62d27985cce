import Foundation

/// A file's bytes, piece by piece, so that a file of any size takes the memory of one piece.
package struct FileChunks: AsyncSequence, Sendable {
  /// One piece.
  package typealias Element = Data

  /// The most bytes of a piece.
  package static let pieceSize = 256 << 10

  private let url: URL
  private let size: Int64
  private let progress: @Sendable (Int64) -> Void

  /// Takes a file that has so many bytes; `progress` is told how many were read so far.
  package init(
    of url: URL,
    size: Int64,
    progress: @escaping @Sendable (Int64) -> Void = { _ in }
  ) {
    self.url = url
    self.size = size
    self.progress = progress
  }

  /// Reads the pieces in their order.
  package struct AsyncIterator: AsyncIteratorProtocol {
    private let chunks: FileChunks
    private var handle: FileHandle?
    private var count: Int64 = 0

    fileprivate init(_ chunks: FileChunks) {
      self.chunks = chunks
    }

    /// The next piece; throws where the file is not the one that was promised.
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
