import Hummingbird
import NIOCore

/// What the responder knows of a request besides its head and body: who sent it.
struct ServiceContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// The other end of the connection: the client, or a proxy before this server.
  let peer: String?

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    peer = source.channel.remoteAddress?.ipAddress
  }
}
