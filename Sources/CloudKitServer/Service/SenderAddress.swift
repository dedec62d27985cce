import Foundation

/// The network of a request's sender, which one sender cannot change.
///
/// An IPv4 address is a network of its own. Of an IPv6 address the first 64 bits count: a provider
/// assigns at least that network to each customer, who then has 2^64 addresses to send from.
package struct SenderAddress: Hashable, Sendable {
  /// The network in keys of counters.
  package let network: String
  /// The site: an IPv4 address, or the first 48 bits of an IPv6 address, which is the most that
  /// providers assign to one customer (RFC 6177).
  package let site: String
  /// The address as it was received, for the log.
  let text: String

  /// The address in messages for other tools; a text that is no address is not shown.
  var shown: String { network == "unknown" ? "an unknown address" : Self.withoutPort(text) }

  /// Whether the site contains more than this network.
  var isPartOfSite: Bool { site != network }

  /// Parses an address with or without a port and brackets; nil if there is none, as for a request
  /// of this process.
  package init?(_ text: String?) {
    guard let text, !text.isEmpty else { return nil }
    self.text = String(text.prefix(64))
    network = Self.network(of: Self.withoutPort(text)) ?? "unknown"
    // 64 bits are sixteen digits.
    site = network.count == 16 ? String(network.prefix(12)) : network
  }

  /// The address in `[::1]:443`, `192.0.2.1:443`, or a plain address.
  package static func withoutPort(_ text: some StringProtocol) -> String {
    if text.hasPrefix("[") {
      return String(text.dropFirst().prefix { $0 != "]" })
    }
    let colons = text.utf8.count { $0 == UInt8(ascii: ":") }
    return colons == 1 ? String(text.prefix { $0 != ":" }) : String(text)
  }

  private static func network(of text: String) -> String? {
    // Long enough for any address with a zone index.
    guard text.utf8.count <= 64 else { return nil }
    var four = in_addr()
    if inet_pton(AF_INET, text, &four) == 1 {
      return withUnsafeBytes(of: &four) { Data($0).hexadecimal }
    }
    var six = in6_addr()
    let plain = String(text.prefix { $0 != "%" })
    guard inet_pton(AF_INET6, plain, &six) == 1 else { return nil }
    let bytes = withUnsafeBytes(of: &six) { Data($0) }
    // An IPv4-mapped address is treated as the IPv4 address.
    let mapped = Data(count: 10) + Data([0xFF, 0xFF])
    return (bytes.starts(with: mapped) ? bytes.suffix(4) : bytes.prefix(8)).hexadecimal
  }
}
