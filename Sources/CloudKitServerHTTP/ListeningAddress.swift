import Foundation

/// The address at which a server listens.
package struct ListeningAddress: Hashable, Sendable {
  package var scheme: String
  package var host: String
  package var port: Int

  /// The address in a form that users can open.
  ///
  /// A server on all interfaces is named by the loopback address, which is always reachable from
  /// this machine.
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
