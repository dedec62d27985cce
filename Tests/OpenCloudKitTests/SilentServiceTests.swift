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

@Suite("A silent service")
struct SilentServiceTests {
  @Test("A cancelled call to a silent service ends with operationCancelled")
  func cancellation() async throws {
    let silent = try LoopbackListener()
    let database = silent.container(identifier: "iCloud.silent").privateCloudDatabase
    let call = Task {
      try await database.record(for: CKRecord.ID(recordName: "r"))
    }
    call.cancel()
    let error = await #expect(throws: CKError.self) { try await call.value }
    #expect(error?.code == .operationCancelled)
  }

  @Test("A connection closed before the reply is a networkFailure")
  func hangUp() async throws {
    let silent = try LoopbackListener()
    let database = silent.container(identifier: "iCloud.silent").privateCloudDatabase
    let thread = Thread { _ = close(silent.nextConnection()) }
    thread.start()
    let error = await #expect(throws: CKError.self) {
      try await database.record(for: CKRecord.ID(recordName: "r"))
    }
    #expect(error?.code == .networkFailure)
  }
}
