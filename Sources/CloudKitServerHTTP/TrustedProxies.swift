import CloudKitServer
import CloudKitWebServices
import Foundation

/// The proxies whose `X-Forwarded-For` header is trusted.
///
/// Any client can send `X-Forwarded-For`; the client's address is the last one in it that is not
/// itself a trusted proxy. What is no address was not appended by a proxy: it and all before it are the client's.
package struct TrustedProxies: Hashable, Sendable {
  private var networks: [Network]

  /// Parses addresses and networks such as `10.0.0.0/8` or `::1`; nil if one is neither.
  package init?(_ texts: [String]) {
    let networks = texts.map { Network($0) }
    guard !networks.contains(nil) else { return nil }
    self.networks = networks.compactMap(\.self)
  }

  /// No proxies: clients connect to this server directly.
  package static let none = TrustedProxies(networks: [])

  private init(networks: [Network]) {
    self.networks = networks
  }

  func contains(_ address: String) -> Bool {
    guard let address = Network.bytes(address) else { return false }
    return networks.contains { $0.contains(address) }
  }

  /// The client's address, from the peer's and the header of proxies.
  func client(peer: String?, forwardedFor: String?) -> String? {
    guard let peer, contains(peer), let forwardedFor else { return peer }
    // Only proxies: the farthest one is the client, for example of a health check.
    var client = peer
    for part in forwardedFor.split(ascii: ",").reversed() {
      // Some proxies add the client's port, which differs for each connection.
      let address = SenderAddress.withoutPort(part.trimmingCharacters(in: .whitespaces))
      guard SenderAddress(address)?.isAddress == true else { break }
      client = address
      if !contains(address) { break }
    }
    return client
  }
}

/// A range of addresses.
private struct Network: Hashable, Sendable {
  var prefix: [UInt8]
  var length: Int

  init?(_ text: String) {
    let halves = text.split(ascii: "/", maxSplits: 1).map(String.init)
    guard let first = halves.first, let bytes = Self.bytes(first) else { return nil }
    var length = bytes.count * 8
    if halves.count == 2 {
      guard let given = Int(halves[1]), (0...length).contains(given) else { return nil }
      length = given
    }
    prefix = bytes
    self.length = length
  }

  func contains(_ address: [UInt8]) -> Bool {
    guard address.count == prefix.count else { return false }
    for bit in 0..<length {
      let mask = UInt8(0x80) >> (bit % 8)
      if address[bit / 8] & mask != prefix[bit / 8] & mask { return false }
    }
    return true
  }

  /// Four or sixteen bytes; an IPv4-mapped address is treated as the IPv4 address.
  static func bytes(_ text: String) -> [UInt8]? {
    var four = in_addr()
    if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: &four) { Array($0) } }
    var six = in6_addr()
    guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
    let bytes = withUnsafeBytes(of: &six) { Array($0) }
    let mapped: [UInt8] = Array(repeating: 0, count: 10) + [0xFF, 0xFF]
    return bytes.starts(with: mapped) ? Array(bytes.suffix(4)) : bytes
  }
}
