import CloudKitWebServices

/// The separate address at which the admin API and the metrics are served.
package struct AdministrationListener: Hashable, Sendable {
  package var host: String
  /// Zero takes any free port.
  package var port: Int

  package init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// Reads `127.0.0.1:8081` or `[::1]:8081`; nil for anything else.
  package init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...])
    else { return nil }
    var host = String(text[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = String(host.dropFirst().dropLast())
    } else if host.contains(":") {
      return nil
    }
    guard !host.isEmpty else { return nil }
    self.init(host: host, port: Int(port))
  }
}

extension CloudKitHTTPServer.Configuration {
  /// The configuration of the listener for administration; nil if there is none.
  ///
  /// On the loopback interface it uses plain HTTP: the certificate is for the clients' host name.
  var ofAdministration: Self? {
    guard let administration else { return nil }
    var own = self
    own.host = administration.host
    own.port = administration.port
    if LoopbackHost.contains(administration.host) { own.tls = nil }
    own.trustedProxies = .none
    own.showsMetrics = true
    return own
  }
}
