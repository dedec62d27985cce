import Foundation

/// Decides whether a host is this machine.
///
/// The answer decides where tokens and passwords may go without encryption, and who sees pages for
/// developers. It is given by the text alone: a name that resolves to a loopback address may resolve
/// to another one later, so `localhost` is the only name (RFC 6761, 6.3).
package enum LoopbackHost {
  /// Whether the host of a URL or of a setting is this machine: `localhost` or a loopback address, in
  /// any case, with or without the brackets of an IPv6 address.
  package static func contains(_ host: String?) -> Bool {
    guard var host = host?.lowercased() else { return false }
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    return host == "localhost" || containsAddress(host)
  }

  /// Whether an address is in 127.0.0.0/8 or is `::1`, also as an IPv4-mapped address.
  package static func containsAddress(_ address: String?) -> Bool {
    // Not longer than an address, and without the NUL at which C stops reading.
    guard let address, address.utf8.count <= 45, !address.utf8.contains(0) else { return false }
    var four = in_addr()
    if inet_pton(AF_INET, address, &four) == 1 {
      return withUnsafeBytes(of: &four) { $0[0] == 127 }
    }
    var six = in6_addr()
    guard inet_pton(AF_INET6, address, &six) == 1 else { return false }
    return withUnsafeBytes(of: &six) { bytes in
      let isUnmapped = bytes.prefix(10).allSatisfy { $0 == 0 }
      let isMapped = isUnmapped && bytes[10] == 0xFF && bytes[11] == 0xFF
      return isMapped ? bytes[12] == 127 : bytes.prefix(15).allSatisfy { $0 == 0 } && bytes[15] == 1
    }
  }
}
