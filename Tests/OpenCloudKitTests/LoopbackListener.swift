import Foundation
import OpenCloudKit
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A listening loopback port; its owner handles the connections.
final class LoopbackListener: Sendable {
  private let descriptor: Int32
  private let port: UInt16

  init() throws {
    #if canImport(Glibc)
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
    descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(descriptor, address, size) == 0 && listen(descriptor, 16) == 0
          && getsockname(descriptor, address, &size) == 0
      }
    }
    port = UInt16(bigEndian: address.sin_port)
    try #require(isListening)
  }

  deinit { close(descriptor) }

  /// Waits for the next connection; negative once the listener was stopped.
  func nextConnection() -> Int32 { accept(descriptor, nil, nil) }

  /// Stops listening and ends the wait for connections.
  func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// A client of this port.
  func container(identifier: String, retries: RetryPolicy = .never) -> CKContainer {
    CKContainer(
      identifier: identifier,
      configuration: CKContainerConfiguration(
        url: URL(string: "http://127.0.0.1:\(port)"),
        apiToken: "token",
        webAuthToken: "person"
      ),
      retries: retries
    )
  }
}
