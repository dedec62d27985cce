import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1

/// Configures the channel of an accepted connection.
///
/// NIO implements parsing, pipelining and the replies to invalid HTTP. The connection has no task
/// of its own: it costs its channel and a handler, so that thousands may wait at the same time.
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
        // The handler validates the headers that it sends.
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

  /// The handler serves it; `OpenConnections` records when it has ended.
  func handle(value: Value, logger: Logger) async {}

  /// The largest size in bytes of one header field and of all.
  ///
  /// A head of more than a few kilobytes takes its place in the budget of bodies once it is complete
  /// (`Exchange.hold`).
  private static let headerLimit = 32 * 1024
  private static let headerCount = 1000
}
