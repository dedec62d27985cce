import HummingbirdCore
import Logging
import NIOCore
import NIOSSL

/// A connection with TLS; each uses the certificate of the time when it was accepted.
struct SecureChannel: ServerChildChannel {
  typealias Value = ConnectionChannel.Value

  let plain: ConnectionChannel
  let certificates: CertificateStore

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      let handler = NIOSSLServerHandler(context: certificates.context())
      try channel.pipeline.syncOperations.addHandler(handler)
    }.flatMap {
      plain.setup(channel: channel, logger: logger)
    }
  }

  func handle(value: Value, logger: Logger) async {}
}
