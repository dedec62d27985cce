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

/// A port that takes connections and says nothing, or hangs up.
private final class SilentPort: Sendable {
  let descriptor: Int32
  let port: UInt16

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

  /// Waits for a connection and closes it.
  func hangUp() {
    let connection = accept(descriptor, nil, nil)
    _ = close(connection)
  }

  deinit { _ = close(descriptor) }

  var container: CKContainer {
    CKContainer(
      identifier: "iCloud.silent",
      configuration: CKContainerConfiguration(
        url: URL(string: "http://127.0.0.1:\(port)"),
        apiToken: "token",
        webAuthToken: "person"
      ),
      retries: .never
    )
  }
}

@Suite("A service that does not answer")
struct SilentServiceTests {
  @Test("A call that is cancelled ends as operationCancelled")
  func cancellation() async throws {
    let silent = try SilentPort()
    let database = silent.container.privateCloudDatabase
    let call = Task {
      try await database.record(for: CKRecord.ID(recordName: "r"))
    }
    call.cancel()
    let error = await #expect(throws: CKError.self) { try await call.value }
    #expect(error?.code == .operationCancelled)
  }

  @Test("A connection that is hung up is a networkFailure, after which the outcome is open")
  func hangUp() async throws {
    let silent = try SilentPort()
    let database = silent.container.privateCloudDatabase
    let thread = Thread { silent.hangUp() }
    thread.start()
    let error = await #expect(throws: CKError.self) {
      try await database.record(for: CKRecord.ID(recordName: "r"))
    }
    #expect(error?.code == .networkFailure)
  }
}
