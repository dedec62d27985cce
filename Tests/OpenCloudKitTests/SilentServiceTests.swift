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

@Suite("A service that does not answer")
struct SilentServiceTests {
  @Test("A call that is cancelled ends as operationCancelled")
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

  @Test("A connection that is hung up is a networkFailure, after which the outcome is open")
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
