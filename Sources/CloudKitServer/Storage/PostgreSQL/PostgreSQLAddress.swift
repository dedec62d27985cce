import Foundation

/// The connection options of a `postgresql://` URL.
package enum PostgreSQLAddress {
  /// Whether the URL connects to another machine without verifying its certificate.
  ///
  /// libpq's default encrypts if the server offers it, and accepts any certificate.
  package static func isUnverified(_ url: String) -> Bool {
    guard let parts = URLComponents(string: url) else { return false }
    func option(_ name: String) -> String? { parts.queryItems?.last { $0.name == name }?.value }
    guard option("sslmode") != "verify-full" else { return false }
    let hosts = (option("host") ?? parts.host ?? "").split(separator: ",").map {
      $0.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
    }
    // No host, or a path, is a Unix socket of this machine.
    return hosts.contains { !$0.hasPrefix("/") && !["localhost", "127.0.0.1", "::1"].contains($0) }
  }
}
