import Foundation
import NIOCore
import NIOPosix

/// A connection whose bytes a test writes by itself.
struct RawLine {
  private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private var rest = ""

  /// Connects to `127.0.0.1`, lends the line to the body, and hangs up.
  static func withLine<Result: Sendable>(
    to port: Int,
    _ body: (inout RawLine) async throws -> Result
  ) async throws -> Result {
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.allowRemoteHalfClosure, value: true)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
            wrappingChannelSynchronously: channel,
            configuration: .init(isOutboundHalfClosureEnabled: true)
          )
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      var line = RawLine(inbound: inbound.makeAsyncIterator(), outbound: outbound)
      return try await body(&line)
    }
  }

  func send(_ text: String) async throws { try await outbound.write(ByteBuffer(string: text)) }

  /// Says that nothing more will be sent.
  func finish() { outbound.finish() }

  /// What comes up to a text and with it; all there is where the line ends before.
  mutating func read(through end: String) async throws -> String {
    while true {
      if let range = rest.range(of: end) {
        defer { rest = String(rest[range.upperBound...]) }
        return String(rest[..<range.upperBound])
      }
      guard let more = try await inbound.next() else {
        defer { rest = "" }
        return rest
      }
      rest += String(buffer: more)
    }
  }

  /// What comes until the other side hangs up.
  mutating func readToEnd() async throws -> String { try await read(through: "\u{0}") }
}
