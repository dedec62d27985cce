import CloudKitServer

/// Open connections, in all and by the network of the peer.
struct ConnectionCounts {
  private let limit: Int
  private let networkLimit: Int
  /// Proxies hold the connections of many clients.
  private let proxies: TrustedProxies
  private var total = 0
  private var byNetwork: [String: Int] = [:]

  init(_ configuration: CloudKitHTTPServer.Configuration) {
    limit = configuration.connectionLimit
    networkLimit = configuration.connectionsPerNetwork
    proxies = configuration.trustedProxies
  }

  /// Counts a connection unless a limit is reached.
  mutating func admit(_ peer: String?) -> Bool {
    guard total < limit else { return false }
    if let network = countedNetwork(of: peer) {
      let own = byNetwork[network, default: 0]
      guard own < networkLimit else { return false }
      byNetwork[network] = own + 1
    }
    total += 1
    return true
  }

  /// Forgets a connection that was admitted.
  mutating func end(_ peer: String?) {
    total -= 1
    guard let network = countedNetwork(of: peer) else { return }
    let left = (byNetwork[network] ?? 1) - 1
    byNetwork[network] = left > 0 ? left : nil
  }

  /// Programs of this machine, a proxy among them, count in the total only.
  private func countedNetwork(of peer: String?) -> String? {
    guard let peer, !proxies.contains(peer), peer != "127.0.0.1", peer != "::1" else { return nil }
    return SenderAddress(peer)?.network
  }
}
