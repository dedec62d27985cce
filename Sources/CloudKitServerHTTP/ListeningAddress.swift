import Foundation

/// Where a server listens.
package struct ListeningAddress: Hashable, Sendable {
  package var scheme: String
  package var host: String
  package var port: Int

  /// The address as people type it.
  ///
  /// A server on all interfaces is named by the loopback, which always reaches it from here.
  package var text: String {
    let name =
      switch host {
      case "0.0.0.0", "::", "": "localhost"
      default: host.contains(":") ? "[\(host)]" : host
      }
    return "\(scheme)://\(name):\(port)"
  }

  package var url: URL? { URL(string: text) }
}
