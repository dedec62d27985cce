import CloudKitServer
import NIOCore
import NIOFoundationCompat
import NIOHTTP1

/// A connection that receives events until it is closed or the server stops.
///
/// Between events it only costs a closure in the hub's table: no task and no buffer. The next event
/// is requested when the socket has accepted the previous one.
final class ListeningConnection {
  private var stream: EventStream
  private let context: ChannelHandlerContext
  private let reader: ReaderWatch
  private let onEnd: () -> Void
  private var wait: EventWait?
  private var isOver = false

  /// `onEnd` is called when the stream ends by itself.
  init(
    _ stream: EventStream,
    _ context: ChannelHandlerContext,
    _ reader: ReaderWatch,
    onEnd: @escaping () -> Void
  ) {
    self.stream = stream
    self.context = context
    self.reader = reader
    self.onEnd = onEnd
  }

  func begin() { send(ByteBuffer(data: stream.greeting)) }

  /// Called when the client disconnects.
  func stop() {
    isOver = true
    wait?.cancel()
    wait = nil
  }

  private func send(_ bytes: ByteBuffer) {
    let part = NIOAny(HTTPServerResponsePart.body(.byteBuffer(bytes)))
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let written = context.writeAndFlush(part)
    reader.wrote(context)
    written.whenComplete { result in
      bound.value.reader.caughtUp()
      if case .success = result { bound.value.awaitEvent() }
    }
  }

  private func awaitEvent() {
    guard !isOver else { return }
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    wait = stream.wait { event in
      bound.eventLoop.execute { bound.value.deliver(event) }
    }
  }

  private func deliver(_ event: EventStream.Event) {
    guard !isOver else { return }
    wait = nil
    guard let bytes = stream.bytes(of: event) else {
      isOver = true
      return onEnd()
    }
    send(ByteBuffer(data: bytes))
  }
}
