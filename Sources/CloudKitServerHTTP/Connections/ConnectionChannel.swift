import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1

/// How a connection that was accepted becomes one that is served.
///
/// Parsing, pipelining and the answers to what is no HTTP are NIO's. The connection has no task of its
/// own: it costs its channel and a handler, so that thousands may wait at once.
struct ConnectionChannel: ServerChildChannel {
  struct Value: ServerChildChannelValue {
    let channel: any Channel
  }

  let responder: ServiceResponder
  let connections: OpenConnections
  let idleTime: TimeAmount

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      var limits = NIOHTTPDecoderLimitConfiguration()
      limits.maxHeaderFieldSize = Self.headerLimit
      limits.maxHeaderListSize = Self.headerLimit
      limits.maxHeaderFieldCount = Self.headerCount
      let pipeline = channel.pipeline.syncOperations
      try pipeline.configureHTTPServerPipeline(
        // The handler takes care of what it sends.
        withOutboundHeaderValidation: false,
        withEncoderConfiguration: .init(),
        withDecoderLimitConfiguration: limits
      )
      try pipeline.addHandler(
        ConnectionHandler(responder: responder, connections: connections, idleTime: idleTime)
      )
      return Value(channel: channel)
    }
  }

  /// The handler serves it; `OpenConnections` knows when it has ended.
  func handle(value: Value, logger: Logger) async {}

  /// Bytes, of one header field and of all.
  private static let headerLimit = 80 * 1024
  private static let headerCount = 1000
}
