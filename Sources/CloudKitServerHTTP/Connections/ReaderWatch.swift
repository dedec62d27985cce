import NIOCore

/// Closes a connection whose client reads its replies too slowly; used only on the connection's
/// event loop.
///
/// Nothing is scheduled while no bytes wait.
final class ReaderWatch {
  private var pace: ReaderPace
  private var hasTimer = false
  /// When the client must have read the whole reply that is being sent; nil: no limit.
  var deadline: NIODeadline?

  init(_ configuration: CloudKitHTTPServer.Configuration) {
    pace = ReaderPace(
      window: .seconds(configuration.readWindow),
      leastBytes: configuration.leastReadRate * Int(max(configuration.readWindow, 1))
    )
  }

  /// Starts to measure, unless it already does: the socket has not accepted all written bytes.
  func wrote(_ context: ChannelHandlerContext) {
    schedule(pace.wrote(waiting: Self.waiting(context), at: .now()), context)
  }

  /// Called when the socket has accepted everything.
  func caughtUp() { pace.caughtUp() }

  private func schedule(_ due: NIODeadline, _ context: ChannelHandlerContext) {
    guard !hasTimer else { return }
    hasTimer = true
    // A weak reference: an ended connection is not retained until the timer fires.
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

  /// The written bytes that the socket has not accepted.
  private static func waiting(_ context: ChannelHandlerContext) -> Int {
    (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }
}
