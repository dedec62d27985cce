import NIOCore

/// Closes a connection whose client takes its answers too slowly; stays on the connection's event loop.
///
/// Nothing is scheduled while no bytes wait.
final class ReaderWatch {
  private var pace: ReaderPace
  private var hasTimer = false
  /// When the client must have taken all of the answer that is sent; nil: it may take any time.
  var deadline: NIODeadline?

  init(_ configuration: CloudKitHTTPServer.Configuration) {
    pace = ReaderPace(
      window: .seconds(configuration.readWindow),
      leastBytes: configuration.leastReadRate * Int(max(configuration.readWindow, 1))
    )
  }

  /// Begins to measure, unless it does already: bytes were written and the socket has not taken all.
  func wrote(_ context: ChannelHandlerContext) {
    schedule(pace.wrote(waiting: Self.waiting(context), at: .now()), context)
  }

  /// The socket has taken everything.
  func caughtUp() { pace.caughtUp() }

  private func schedule(_ due: NIODeadline, _ context: ChannelHandlerContext) {
    guard !hasTimer else { return }
    hasTimer = true
    // A connection that has ended is not kept until the time comes.
    context.eventLoop.assumeIsolated().scheduleTask(deadline: due) { [weak self, weak context] in
      guard let context else { return }
      self?.check(context)
    }
  }

  private func check(_ context: ChannelHandlerContext) {
    hasTimer = false
    guard context.channel.isActive else { return }
    switch pace.check(waiting: Self.waiting(context), at: .now(), deadline: deadline) {
    case .idle: break
    case .waits(let due): schedule(due, context)
    case .tooSlow: context.close(promise: nil)
    }
  }

  /// Bytes that were written and that the socket has not taken.
  private static func waiting(_ context: ChannelHandlerContext) -> Int {
    (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }
}
