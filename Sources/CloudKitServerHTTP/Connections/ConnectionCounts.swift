import CloudKitServer

/// Open connections, in all and by the network and the site of the peer.
struct ConnectionCounts {
  private let limit: Int
  private let networkLimit: Int
  /// Half of all: behind some providers a site is many customers, behind others a single one.
  private let siteLimit: Int
  /// Proxies hold the connections of many clients.
  private let proxies: TrustedProxies
  private var total = 0
  private var byNetwork: [String: Int] = [:]
  private var bySite: [String: Int] = [:]

  init(_ configuration: CloudKitHTTPServer.Configuration) {
    limit = configuration.connectionLimit
    networkLimit = configuration.connectionsPerNetwork
    siteLimit = max(1, configuration.connectionLimit / 2)
    proxies = configuration.trustedProxies
  }

  /// Counts a connection unless a limit is reached.
  mutating func admit(_ peer: String?) -> Bool {
    guard total < limit else { return false }
    if let sender = counted(peer) {
      let own = byNetwork[sender.network, default: 0]
      let ofSite = bySite[sender.site, default: 0]
      guard own < networkLimit, ofSite < siteLimit else { return false }
      byNetwork[sender.network] = own + 1
      bySite[sender.site] = ofSite + 1
    }
    total += 1
    return true
  }

  /// Removes an admitted connection.
  mutating func end(_ peer: String?) {
    total -= 1
    guard let sender = counted(peer) else { return }
    Self.decrease(&byNetwork, sender.network)
    Self.decrease(&bySite, sender.site)
  }

  private static func decrease(_ counts: inout [String: Int], _ key: String) {
    let left = (counts[key] ?? 1) - 1
    counts[key] = left > 0 ? left : nil
  }

  /// Programs of this machine, a proxy among them, count in the total only.
  private func counted(_ peer: String?) -> SenderAddress? {
    guard let peer, !proxies.contains(peer), peer != "127.0.0.1", peer != "::1" else { return nil }
    return SenderAddress(peer)
  }
}
