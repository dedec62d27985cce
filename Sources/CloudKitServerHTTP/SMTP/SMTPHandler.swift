import CloudKitServer
import Foundation
import NIOCore
import NIOFoundationCompat
import NIOSSL

/// Connects an SMTP session to a socket.
final class SMTPHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private var conversation: SMTPConversation
  private var reader = SMTPReplyReader()
  private let settings: SMTPSettings
  private let tls: NIOSSLContext?
  private let outcome: EventLoopPromise<Void>
  private var isOver = false
  private var timeout: Scheduled<Void>?

  init(
    _ conversation: SMTPConversation,
    _ settings: SMTPSettings,
    _ tls: NIOSSLContext?,
    _ outcome: EventLoopPromise<Void>
  ) {
    self.conversation = conversation
    self.settings = settings
    self.tls = tls
    self.outcome = outcome
  }

  func channelActive(context: ChannelHandlerContext) {
    awaitReply(context)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    while !isOver, let byte = bytes.readInteger(as: UInt8.self) {
      do {
        guard let reply = try reader.take(byte) else { continue }
        timeout?.cancel()
        let action = try conversation.receive(reply)
        // Bytes that were received before TLS must not be treated as received within it
        // (CVE-2011-0411).
        if action == .startTLS, bytes.readableBytes > 0 {
          throw MailFailure(
            "the server sent more than a reply before TLS",
            isTemporary: true,
            isOfServer: true
          )
        }
        try carryOut(action, context)
      } catch let failure as MailFailure {
        end(.failure(failure), context)
      } catch {
        end(
          .failure(
            MailFailure("the peer is not a mail server", isTemporary: true, isOfServer: true)
          ),
          context
        )
      }
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    end(
      .failure(
        MailFailure(
          "the mail server closed the connection before \(conversation.awaited)",
          isTemporary: true,
          isOfServer: true
        )
      ),
      context
    )
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    end(
      .failure(
        MailFailure(
          "the connection to \(settings.host):\(settings.port) failed: \(error)",
          isTemporary: true,
          isOfServer: true
        )
      ),
      context
    )
  }

  // MARK: Work

  private func carryOut(
    _ action: SMTPConversation.Action,
    _ context: ChannelHandlerContext
  ) throws {
    switch action {
    case .send(let line):
      write(Data("\(line)\r\n".utf8), context)
      awaitReply(context)
    case .deliver(let document):
      write(document, context)
      awaitReply(context)
    case .startTLS:
      guard let tls else { return }
      try context.pipeline.syncOperations.addHandler(
        SMTPMailer.secure(tls, settings.host),
        position: .first
      )
      // Written after the handshake.
      try carryOut(conversation.secured(), context)
    case .finish:
      write(Data("QUIT\r\n".utf8), context)
      end(.success(()), context)
    }
  }

  private func write(_ bytes: Data, _ context: ChannelHandlerContext) {
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(data: bytes)), promise: nil)
  }

  /// A whole reply must be received within its time, regardless of how slowly its bytes arrive.
  private func awaitReply(_ context: ChannelHandlerContext) {
    timeout?.cancel()
    let seconds = conversation.isDelivering ? settings.deliveryTimeout : settings.replyTimeout
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let awaited = conversation.awaited
    timeout = context.eventLoop.scheduleTask(in: .milliseconds(Int64(seconds * 1000))) {
      let (handler, context) = bound.value
      handler.end(
        .failure(
          MailFailure(
            "\(awaited) was not received within \(Int(seconds)) seconds",
            isTemporary: true,
            isOfServer: true
          )
        ),
        context
      )
    }
  }

  private func end(_ result: Result<Void, MailFailure>, _ context: ChannelHandlerContext) {
    guard !isOver else { return }
    isOver = true
    timeout?.cancel()
    switch result {
    case .success: outcome.succeed()
    case .failure(let failure): outcome.fail(failure)
    }
    context.close(promise: nil)
  }
}
