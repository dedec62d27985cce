import CloudKitServerHTTP
import Foundation
import NIOCore
import NIOPosix

/// A connection on which a test writes the bytes itself.
struct RawLine {
  private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private var rest = ""

  /// Starts a server, passes a connection to it to the body, and stops it.
  static func withServer(
    bodyLimit: Int,
    idleSeconds: Int64 = 120,
    handlers: CloudKitHTTPServer.Handlers,
    _ body: (inout RawLine) async throws -> Void
  ) async throws {
    let server = try await CloudKitHTTPServer(
      configuration: .init(bodyLimit: bodyLimit, idleSeconds: idleSeconds),
      logger: .quiet,
      handlers: handlers
    ).start()
    let outcome: Result<Void, any Error>
    do {
      outcome = .success(try await RawLine.withLine(to: server.address.port, body))
    } catch {
      outcome = .failure(error)
    }
    try await server.stop()
    try outcome.get()
  }

  /// Connects to `127.0.0.1`, passes the connection to the body, and disconnects.
  static func withLine<Result: Sendable>(
    to port: Int,
    _ body: (inout RawLine) async throws -> Result
  ) async throws -> Result {
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.allowRemoteHalfClosure, value: true)
      // Else the kernel lets it grow with the speed of the reader.
      .channelOption(.socketOption(.so_rcvbuf), value: 262_144)
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

  /// Closes the sending side.
  func finish() { outbound.finish() }

  /// The received bytes up to and including a text, or all if the connection ends before.
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

  /// The received bytes until the peer disconnects.
  mutating func readToEnd() async throws -> String { try await read(through: "\u{0}") }
}
