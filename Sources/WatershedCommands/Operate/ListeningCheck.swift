import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Whether a server could listen on an address.
enum ListeningCheck {
  /// The system's reason why a socket cannot be bound to the address; nil if it can, or if the host
  /// is a name that does not resolve, which another check reports.
  static func problem(host: String, port: Int) -> String? {
    var hints = addrinfo()
    hints.ai_flags = AI_PASSIVE
    #if canImport(Glibc)
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    #else
    hints.ai_socktype = SOCK_STREAM
    #endif
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, "\(port)", &hints, &found) == 0, let address = found else { return nil }
    defer { freeaddrinfo(found) }
    let descriptor = socket(
      address.pointee.ai_family,
      address.pointee.ai_socktype,
      address.pointee.ai_protocol
    )
    guard descriptor >= 0 else { return nil }
    defer { _ = close(descriptor) }
    // As the server does: connections that have ended recently do not occupy the port.
    var isReused: Int32 = 1
    _ = setsockopt(
      descriptor,
      SOL_SOCKET,
      SO_REUSEADDR,
      &isReused,
      socklen_t(MemoryLayout<Int32>.size)
    )
    guard bind(descriptor, address.pointee.ai_addr, address.pointee.ai_addrlen) != 0 else {
      // Linux allows two sockets with this option to be bound; only one of them can listen.
      return listen(descriptor, 1) == 0 ? nil : String(cString: strerror(errno))
    }
    return String(cString: strerror(errno))
  }
}
