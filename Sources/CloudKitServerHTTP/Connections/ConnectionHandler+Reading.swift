import NIOCore

/// Backpressure: when the connection reads from its channel.
extension ConnectionHandler {
  func read(context: ChannelHandlerContext) {
    if holds.begins(isWritable: context.channel.isWritable) { context.read() }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable {
      finishHeldEnd(context)
      readOn()
    }
    context.fireChannelWritabilityChanged()
  }

  /// Releases a request's reason to read nothing, and reads on if no other is left.
  func release(_ reason: ReadHolds.Reason, of exchange: Int) {
    holds.release(reason, of: exchange)
    readOn()
  }

  private func readOn() {
    guard let context, holds.resumes(isWritable: context.channel.isWritable) else { return }
    context.read()
  }
}
