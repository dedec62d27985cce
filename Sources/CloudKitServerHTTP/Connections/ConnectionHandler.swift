import CloudKitServer
import CloudKitWebServices
import Foundation
import NIOCore
import NIOFoundationCompat
import NIOHTTP1

/// Serves one connection: receives requests, has the service handle them, and sends the replies.
///
/// All methods run on the connection's event loop. Longer work runs in a task for each request,
/// which passes its reply back through a `ConnectionLine`. Requests are handled one at a time:
/// NIO's pipeline handler buffers the next one until the reply to this one has ended.
final class ConnectionHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  let responder: ServiceResponder
  private let connections: OpenConnections
  private let idleTime: TimeAmount

  private(set) var context: ChannelHandlerContext?
  /// The request that is being served.
  private(set) var exchange: Exchange?
  private var listening: ListeningConnection?
  private var output = ConnectionOutput.open
  /// Whether the client has closed its sending side.
  private var isInputClosed = false
  /// Whether the last request ended after its reply.
  private var isInputEnded = false
  private var lastActivity = NIODeadline.now()
  private var hasIdleTimer = false
  private let reader: ReaderWatch
  var holds = ReadHolds()
  /// The number of requests so far.
  private var requestCount = 0

  init(responder: ServiceResponder, connections: OpenConnections, idleTime: TimeAmount) {
    self.responder = responder
    self.connections = connections
    self.idleTime = idleTime
    reader = ReaderWatch(responder.configuration)
  }

  // MARK: The connection

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    guard connections.add(context.channel) else {
      // Closed without a response: writing one would use the resources that the limit protects.
      output.beginClosing()
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      return context.eventLoop.execute { bound.value.close(promise: nil) }
    }
    watchIdleness(context)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    abandon(context)
    connections.remove(context.channel)
    self.context = nil
  }

  func channelInactive(context: ChannelHandlerContext) {
    abandon(context)
    context.fireChannelInactive()
  }

  /// Handles a disconnect of the client.
  private func abandon(_ context: ChannelHandlerContext) {
    output.beginClosing()
    listening?.stop()
    listening = nil
    guard let exchange else { return }
    self.exchange = nil
    exchange.upload?.finish(ChannelError.ioOnClosedChannel)
    if exchange.incoming.endsWithClient { exchange.task?.cancel() }
    // A running task records how it ended, and keeps the body until then.
    guard exchange.task == nil else { return }
    exchange.drop(responder.budget)
    responder.note(exchange, status: 499)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // NIO's handler has replied to invalid HTTP; any other error is a broken connection.
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case ChannelEvent.inputClosed:
      isInputClosed = true
      // The rest of a reply is being written; the connection is closed after it.
      guard output != .endHeld else { return }
      guard let exchange, listening == nil else { return context.close(promise: nil) }
      // A client that only closes its sending side cannot be distinguished from one that has
      // disconnected. A read is cancelled, as by other servers; the reply to a write may still be
      // read.
      if exchange.incoming.endsWithClient { exchange.task?.cancel() }
    case is OpenConnections.Stopping:
      if let exchange, exchange.incoming.kind == .poll { exchange.task?.cancel() }
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  /// Closes the connection when nothing is received for a while and no request is being handled.
  private func watchIdleness(_ context: ChannelHandlerContext) {
    guard !hasIdleTimer else { return }
    hasIdleTimer = true
    let due = lastActivity + idleTime
    context.eventLoop.assumeIsolated().scheduleTask(deadline: due) { [weak self] in
      self?.endIdleness()
    }
  }

  private func endIdleness() {
    hasIdleTimer = false
    guard let context else { return }
    // The end of the reply starts the timer again.
    if let exchange, exchange.isReceived { return }
    if NIODeadline.now() >= lastActivity + idleTime {
      context.close(promise: nil)
    } else {
      watchIdleness(context)
    }
  }

  // MARK: Requests

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let part = unwrapInboundIn(data)
    guard !output.isClosing else {
      if case .end = part { endInput(context) }
      return
    }
    lastActivity = .now()
    switch part {
    case .head(let head): begin(head, context)
    case .body(let part): take(part, context)
    case .end: endRequest(context)
    }
  }

  /// Closes the connection of an earlier reply at the end of its request: the client has sent what it announced.
  ///
  /// NIO would keep what follows a request for another protocol.
  private func endInput(_ context: ChannelHandlerContext) {
    isInputEnded = true
    if output == .closed { context.close(promise: nil) }
  }

  private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    let incoming = responder.incoming(head, context.remoteAddress?.ipAddress)
    requestCount += 1
    let exchange = Exchange(incoming, head, number: requestCount)
    self.exchange = exchange
    responder.began()
    let hasRoom = exchange.hold(head, responder.budget)
    let defect = head.defect
    guard hasRoom, defect == nil else {
      let refusal =
        hasRoom ? responder.badHead(incoming, defect ?? "") : responder.noRoom(incoming)
      // The client receives the refusal instead of 100 Continue.
      if exchange.isExpectant { return send(refusal, exchange, context) }
      exchange.bodyUse = .discarded(refusal)
      return
    }
    if exchange.isExpectant {
      if exchange.incoming.kind != .transfer, exchange.announced > exchange.limit {
        // The client receives the refusal instead of 100 Continue.
        return send(responder.tooLarge(exchange.incoming), exchange, context)
      }
    }
    if exchange.needsCheck(of: exchange.announced) {
      return checkCredential(of: exchange, context)
    }
    sendContinue(exchange, context)
    if exchange.incoming.kind == .transfer { transfer(exchange, context) }
  }

  /// Allows a client that waits for it to send the body (100 Continue).
  func sendContinue(_ exchange: Exchange, _ context: ChannelHandlerContext) {
    guard exchange.isExpectant, exchange.received == 0 else { return }
    let head = HTTPResponseHead(version: exchange.version, status: .continue)
    context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
  }

  private func take(_ part: ByteBuffer, _ context: ChannelHandlerContext) {
    guard let exchange else { return }
    exchange.received += part.readableBytes
    watchPace(of: exchange, context)
    switch exchange.bodyUse {
    case .answered: break
    case .discarded(let reply):
      // A refusal is sent after the end of the body, unless the body is too long.
      if exchange.received > responder.configuration.bodyLimit { send(reply, exchange, context) }
    case .streamed(let upload):
      if case .stopProducing = upload.yield(part) { holds.hold(.upload, of: exchange.number) }
    case .kept: keep(part, of: exchange, context)
    }
  }

  private func keep(
    _ part: ByteBuffer,
    of exchange: Exchange,
    _ context: ChannelHandlerContext
  ) {
    if exchange.received > max(exchange.limit, responder.dropLimit) {
      send(responder.tooLarge(exchange.incoming), exchange, context)
    } else if !exchange.keep(part, responder.budget) {
      exchange.bodyUse = .discarded(responder.noRoom(exchange.incoming))
    } else if exchange.needsCheck(of: exchange.received) {
      checkCredential(of: exchange, context)
    }
  }

  /// Ends a request whose body is received too slowly, or a body in memory that takes too long.
  ///
  /// A body that is received with the head or immediately after it needs no timer.
  private func watchPace(of exchange: Exchange, _ context: ChannelHandlerContext) {
    guard exchange.pace == nil,
      exchange.announced == 0 || exchange.received < exchange.announced
    else { return }
    exchange.pace = exchange.received
    schedulePaceCheck(of: exchange, context)
  }

  private func schedulePaceCheck(of exchange: Exchange, _ context: ChannelHandlerContext) {
    let window = TimeAmount.seconds(responder.configuration.bodyWindow)
    context.eventLoop.assumeIsolated().scheduleTask(in: window) { [weak self] in
      self?.checkPace(of: exchange)
    }
  }

  private func checkPace(of exchange: Exchange) {
    guard self.exchange === exchange, !exchange.isReceived, let context else { return }
    let configuration = responder.configuration
    let came = exchange.received - (exchange.pace ?? 0)
    let least = configuration.leastBodyRate * Int(max(configuration.bodyWindow, 1))
    let isLate =
      exchange.incoming.kind == .whole
      && exchange.start.duration(to: .now) > .seconds(configuration.bodySeconds)
    // A reader that pauses the upload is not the client's fault.
    guard holds.isHolding || (came >= least && !isLate) else {
      responder.note(exchange, status: 408)
      return context.close(promise: nil)
    }
    exchange.pace = exchange.received
    schedulePaceCheck(of: exchange, context)
  }

  func endRequest(_ context: ChannelHandlerContext) {
    guard let exchange else { return }
    exchange.isReceived = true
    // The end of the check ends the request.
    guard exchange.credentialCheck != .isRunning else { return }
    switch exchange.bodyUse {
    case .answered: return
    case .discarded(let reply): return send(reply, exchange, context)
    case .kept, .streamed: break
    }
    switch exchange.incoming.kind {
    case .transfer: exchange.upload?.finish()
    case .events: openEvents(exchange, context)
    case .whole, .poll:
      guard exchange.received <= exchange.limit else {
        return send(responder.tooLarge(exchange.incoming), exchange, context)
      }
      answer(exchange, context)
    }
  }

  // MARK: Work

  func line(_ exchange: Exchange, _ context: ChannelHandlerContext) -> ConnectionLine {
    ConnectionLine(self, exchange, context.eventLoop)
  }

  private func answer(_ exchange: Exchange, _ context: ChannelHandlerContext) {
    var incoming = exchange.incoming
    incoming.request.body = Data(buffer: exchange.body, byteTransferStrategy: .noCopy)
    exchange.body = ByteBuffer()
    let line = line(exchange, context)
    exchange.task = Task { [responder, incoming] in
      line.answer(StreamedResponse(await responder.respond(to: incoming)))
    }
  }

  private func transfer(_ exchange: Exchange, _ context: ChannelHandlerContext) {
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let (upload, source) = UploadStream.make { [number = exchange.number] in
      bound.eventLoop.execute { bound.value.release(.upload, of: number) }
    }
    exchange.bodyUse = .streamed(source)
    let line = line(exchange, context)
    exchange.task = Task { [responder, incoming = exchange.incoming] in
      line.answer(await responder.transfer(incoming, upload))
    }
  }

  private func openEvents(_ exchange: Exchange, _ context: ChannelHandlerContext) {
    // The body is not needed, and the stream may be open for days.
    exchange.drop(responder.budget)
    let line = line(exchange, context)
    exchange.task = Task { [responder, incoming = exchange.incoming] in
      if let stream = responder.openEvents(incoming) {
        line.listen(stream)
      } else {
        // A stream that cannot be opened is refused like any other request.
        line.answer(StreamedResponse(await responder.respond(to: incoming)))
      }
    }
  }

  // MARK: Replies

  /// The reply of a task.
  func finish(_ exchange: Exchange, _ response: StreamedResponse) {
    // The task that used the body has ended.
    exchange.release(responder.budget)
    guard self.exchange === exchange, let context else {
      return responder.note(exchange, status: response.status)
    }
    guard exchange.isReceived || exchange.received > responder.configuration.bodyLimit else {
      // A refusal that did not read the body: the body is read and discarded, so that the client
      // reads the reply.
      exchange.upload?.finish()
      exchange.bodyUse = .discarded(response)
      release(.upload, of: exchange.number)
      return
    }
    send(response, exchange, context)
  }

  /// Sends a reply, or a refusal if the memory budget of replies is used up.
  ///
  /// A commit stays in the storage: the client repeats the request, and a batch with a
  /// sequence number is answered with the kept reply.
  func send(
    _ response: StreamedResponse,
    _ exchange: Exchange,
    _ context: ChannelHandlerContext
  ) {
    exchange.bodyUse = .answered
    exchange.drop(responder.budget)
    let response =
      exchange.hold(response, responder.replies) ? response : responder.noRoom(exchange.incoming)
    let isLast =
      !exchange.isKeptAlive || isInputClosed || !exchange.isReceived
      || response.isUnbounded && exchange.version == .http1_0
    let head = responder.head(of: response, exchange, isLast: isLast)
    responder.note(exchange, status: response.status, headers: head.headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    guard !exchange.incoming.isHead else { return end(exchange, context, isLast) }
    switch response.body {
    case .whole(let data) where data.count <= ConnectionLine.pieceSize:
      if !data.isEmpty {
        let part = HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(data: data)))
        let written = context.write(wrapOutboundOut(part))
        written.assumeIsolated().whenComplete { [replies = responder.replies] _ in
          exchange.releaseReply(replies)
        }
      }
      end(exchange, context, isLast)
    case .whole, .stream:
      if case .whole = response.body {
        reader.deadline = .now() + .seconds(responder.configuration.replySeconds)
      }
      context.flush()
      let line = line(exchange, context)
      exchange.task = Task { await line.send(response.body, isLast: isLast) }
    }
  }

  /// Writes a piece of a reply; the future completes when the socket has accepted it.
  func write(_ bytes: ByteBuffer, _ exchange: Exchange) -> EventLoopFuture<Void>? {
    guard self.exchange === exchange, let context else { return nil }
    let written = context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(bytes))))
    reader.wrote(context)
    written.assumeIsolated().whenComplete { [reader] _ in reader.caughtUp() }
    return written
  }

  /// Ends a reply that a task has sent.
  func end(_ exchange: Exchange, isLast: Bool) {
    exchange.releaseReply(responder.replies)
    reader.deadline = nil
    guard self.exchange === exchange, let context else { return }
    end(exchange, context, isLast || isInputClosed)
  }

  /// Closes the connection of an incomplete reply, so that the client does not treat it as
  /// complete.
  func breakOff(_ exchange: Exchange) {
    exchange.releaseReply(responder.replies)
    guard self.exchange === exchange else { return }
    context?.close(promise: nil)
  }

  private func end(_ exchange: Exchange, _ context: ChannelHandlerContext, _ isLast: Bool) {
    exchange.task = nil
    exchange.releaseHeldHead()
    lastActivity = .now()
    // Before the end is written, because the next request may arrive during that.
    self.exchange = nil
    guard isLast else {
      watchIdleness(context)
      context.flush()
      guard context.channel.isWritable else {
        // NIO delivers the next pipelined request with the end of this reply, so the end waits
        // until the client has read the reply.
        output.holdEnd()
        return reader.wrote(context)
      }
      return context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
    output.beginClosing()
    // If the client is still sending, closing the socket would discard the reply: only the sending
    // side is closed, and input is discarded until the request ends, the client disconnects or the idle timeout.
    isInputEnded = exchange.isReceived
    watchIdleness(context)
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    context.writeAndFlush(wrapOutboundOut(.end(nil))).flatMap {
      let (handler, context) = bound.value
      handler.output.close()
      return context.close(mode: handler.isInputEnded ? .all : .output)
    }.whenFailure { _ in
      bound.value.1.close(promise: nil)
    }
  }

  /// Writes the held end of a reply after the client has read the reply.
  func finishHeldEnd(_ context: ChannelHandlerContext) {
    guard output.takeHeldEnd() else { return }
    reader.caughtUp()
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    let isLast = isInputClosed
    context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
      if isLast { bound.value.close(promise: nil) }
    }
  }

  // MARK: Event streams

  func listen(_ stream: EventStream, _ exchange: Exchange) {
    guard self.exchange === exchange, let context, !isInputClosed else {
      responder.note(exchange, status: 499)
      return breakOff(exchange)
    }
    exchange.task = nil
    let head = responder.eventsHead(exchange)
    responder.note(exchange, status: 200, headers: head.headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    exchange.releaseHead()
    // The client sends nothing more: free the read buffer.
    try? context.channel.syncOptions?.setOption(
      .recvAllocator,
      value: FixedSizeRecvByteBufferAllocator(capacity: 64)
    )
    let listening = ListeningConnection(
      stream,
      context,
      reader,
      onEnd: { [unowned self] in
        self.listening = nil
        if let exchange = self.exchange { end(exchange, isLast: true) }
      }
    )
    self.listening = listening
    listening.begin()
  }
}
