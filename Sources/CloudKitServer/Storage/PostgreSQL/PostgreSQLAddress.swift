import Foundation

/// What a `postgresql://` URL says of the way to the database.
package enum PostgreSQLAddress {
  /// Whether the URL leads to another machine whose certificate is not checked, with its name.
  ///
  /// libpq's default encrypts where the server offers it and believes any certificate.
  package static func isUnverified(_ url: String) -> Bool {
    guard let parts = URLComponents(string: url) else { return false }
    func option(_ name: String) -> String? { parts.queryItems?.last { $0.name == name }?.value }
    guard option("sslmode") != "verify-full" else { return false }
    let hosts = (option("host") ?? parts.host ?? "").split(separator: ",").map {
      $0.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
    }
    // No host, or a path, is a socket of this machine.
    return hosts.contains { !$0.hasPrefix("/") && !["localhost", "127.0.0.1", "::1"].contains($0) }
  }
}
