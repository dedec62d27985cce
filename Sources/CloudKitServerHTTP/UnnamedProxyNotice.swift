import Logging
import Synchronization

/// Logs once that a proxy which is not in the configuration forwards requests.
///
/// From a public address the header is forged by a client; from this machine or a private network
/// it is a proxy's, and all clients behind it count as one network.
final class UnnamedProxyNotice: Sendable {
  private let proxies: TrustedProxies
  private let logger: Logger
  private let isLogged = Atomic<Bool>(false)

  private static let near = TrustedProxies([
    "127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fe80::/10",
  ])

  init(_ proxies: TrustedProxies, _ logger: Logger) {
    self.proxies = proxies
    self.logger = logger
  }

  func look(peer: String?, forwardedFor: String?) {
    guard forwardedFor != nil, let peer, !isLogged.load(ordering: .relaxed),
      !proxies.contains(peer), Self.near?.contains(peer) == true,
      isLogged.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged
    else { return }
    logger.warning(
      """
      requests come with X-Forwarded-For from \(peer), which trustedProxies does not name: if it is \
      a proxy, all its clients count as one network
      """
    )
  }
}
