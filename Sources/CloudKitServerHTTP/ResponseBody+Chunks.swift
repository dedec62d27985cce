import CloudKitServer
import Foundation
import HummingbirdCore
import NIOCore
import NIOFoundationCompat
import Synchronization

extension ResponseBody {
  /// Bytes handed to the socket at once: large assets must not be copied whole a second time.
  private static let chunkSize = 262_144

  init(chunksOf data: Data) {
    guard data.count > Self.chunkSize else {
      self = data.isEmpty ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(data: data))
      return
    }
    self.init(contentLength: data.count) { writer in
      var start = data.startIndex
      while start < data.endIndex {
        let end = data.index(start, offsetBy: Self.chunkSize, limitedBy: data.endIndex)
        let chunk = data[start..<(end ?? data.endIndex)]
        try await writer.write(ByteBuffer(data: chunk))
        start = chunk.endIndex
      }
      try await writer.finish(nil)
    }
  }

  /// A body that is read while it is sent.
  init(
    length: Int64,
    read:
      @escaping @Sendable (
        _ sink: @escaping @Sendable (Data) async throws -> Void
      ) async throws -> Void
  ) {
    self.init(contentLength: Int(length)) { writer in
      let outlet = BodyOutlet(writer: writer)
      try await read { try await outlet.write($0) }
      try await outlet.finish()
    }
  }
}

/// The connection's writing side, used by one task piece after piece.
private final class BodyOutlet: @unchecked Sendable {
  // Unchecked: the reading of a body awaits each piece before it hands over the next one.
  private var writer: any ResponseBodyWriter

  init(writer: any ResponseBodyWriter) {
    self.writer = writer
  }

  func write(_ data: Data) async throws { try await writer.write(ByteBuffer(data: data)) }

  func finish() async throws { try await writer.finish(nil) }
}

/// A number that pieces of a request add to.
final class Counter: Sendable {
  private let count = Atomic<Int>(0)

  var value: Int { count.load(ordering: .relaxed) }

  func add(_ more: Int) { count.wrappingAdd(more, ordering: .relaxed) }
}
