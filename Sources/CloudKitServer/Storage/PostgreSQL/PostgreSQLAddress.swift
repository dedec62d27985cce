import CloudKitWebServices
import Foundation

/// The connection options of a `postgresql://` URL.
package enum PostgreSQLAddress {
  /// Whether the URL connects to another machine without verifying its certificate.
  ///
  /// libpq's default encrypts if the server offers it, and accepts any certificate.
  package static func isUnverified(_ url: String) -> Bool {
    guard let parts = URLComponents(string: url) else { return false }
    guard option("sslmode", in: parts) != "verify-full" else { return false }
    let hosts = (option("host", in: parts) ?? parts.host ?? "").split(ascii: ",")
    // No host, or a path, is a Unix socket of this machine.
    return hosts.contains { !$0.hasPrefix("/") && !LoopbackHost.contains(String($0)) }
  }

  /// Whether the URL says how the connection is encrypted and verified.
  package static func namesMode(_ url: String) -> Bool {
    URLComponents(string: url).map { option("sslmode", in: $0) != nil } ?? false
  }

  private static func option(_ name: String, in parts: URLComponents) -> String? {
    parts.queryItems?.last { $0.name == name }?.value
  }
}
