import CloudKitWebServices
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
  var shown: String { network == Self.unknown ? "an unknown address" : Self.withoutPort(text) }

  /// Whether the site contains more than this network.
  var isPartOfSite: Bool { site != network }

  /// Parses an address with or without a port and brackets; nil if there is none, as for a request
  /// of this process.
  package init?(_ text: String?) {
    guard let text, !text.isEmpty else { return nil }
    self.text = String(text.prefix(64))
    network = Self.network(of: Self.withoutPort(text)) ?? Self.unknown
    // 64 bits are sixteen digits.
    site = network.count == 16 ? String(network.prefix(12)) : network
  }

  /// Whether the text is an address.
  package var isAddress: Bool { network != Self.unknown }

  private static let unknown = "unknown"

  /// The address in `[::1]:443`, `192.0.2.1:443`, or a plain address; any other text as it is.
  package static func withoutPort(_ text: String) -> String {
    let bytes = Array(text.utf8)[...]
    if bytes.first == UInt8(ascii: "[") {
      let address = bytes.dropFirst().prefix { $0 != UInt8(ascii: "]") }
      let rest = bytes[address.endIndex...].dropFirst()
      guard rest.isEmpty || isPort(rest) else { return text }
      return String(decoding: address, as: UTF8.self)
    }
    let address = bytes.prefix { $0 != UInt8(ascii: ":") }
    guard isPort(bytes[address.endIndex...]) else { return text }
    return String(decoding: address, as: UTF8.self)
  }

  /// Whether bytes are a colon and digits.
  private static func isPort(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.first == UInt8(ascii: ":")
      && bytes.dropFirst().allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  private static func network(of text: String) -> String? {
    // Long enough for any address with a zone index.
    guard text.utf8.count <= 64 else { return nil }
    var four = in_addr()
    if inet_pton(AF_INET, text, &four) == 1 {
      return withUnsafeBytes(of: &four) { Data($0).hexadecimal }
    }
    var six = in6_addr()
    let plain = String(text.prefix(before: "%"))
    guard inet_pton(AF_INET6, plain, &six) == 1 else { return nil }
    let bytes = withUnsafeBytes(of: &six) { Data($0) }
    // An IPv4-mapped address is treated as the IPv4 address.
    let mapped = Data(count: 10) + Data([0xFF, 0xFF])
    return (bytes.starts(with: mapped) ? bytes.suffix(4) : bytes.prefix(8)).hexadecimal
  }
}
