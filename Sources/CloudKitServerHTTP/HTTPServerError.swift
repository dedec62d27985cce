import Foundation
import NIOCore

/// Why a server could not listen, as a sentence with a remedy.
package enum HTTPServerError: Error, Hashable, Sendable, CustomStringConvertible {
  case portInUse(host: String, port: Int)
  case portNotAllowed(port: Int)
  case unknownHost(String, String)
  case unreadableCertificate(String, String, String)
  case notListening(host: String, port: Int, reason: String)
  case stoppedEarly

  init(_ error: IOError, host: String, port: Int) {
    self =
      switch error.errnoCode {
      case EADDRINUSE: .portInUse(host: host, port: port)
      case EACCES: .portNotAllowed(port: port)
      case EADDRNOTAVAIL: .unknownHost(host, "this machine has no such address")
      default: .notListening(host: host, port: port, reason: error.description)
      }
  }

  package var description: String {
    switch self {
    case .portInUse(let host, let port):
      "Port \(port) on \(host) is in use by another program; choose another with --port, or --port 0 for any free one."
    case .portNotAllowed(let port):
      "This user may not listen on port \(port); choose one above 1023 with --port."
    case .unknownHost(let host, let reason):
      "Cannot listen on the host \(host): \(reason)."
    case .unreadableCertificate(let certificate, let key, let reason):
      "The TLS certificate \(certificate) and key \(key) cannot be used: \(reason)."
    case .notListening(let host, let port, let reason):
      "Cannot listen on \(host):\(port): \(reason)."
    case .stoppedEarly:
      "The server stopped before it listened."
    }
  }
}
