import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Defects that random requests found, each as the few requests that reproduce it.
@Suite("Defects that random requests found")
struct FoundRequestTests {
  @Test("A listing that skipped a record does not continue in data from before the record moved")
  func passedOver() async throws {
    try await withTemporaryFolder { folder in
      let copy = folder.appendingPathExtension("copy")
      defer { try? FileManager.default.removeItem(at: copy) }
      let first = try await TestServer(folder: folder)
      var person = try await first.person().extended
      try await person.makeZone()
      let start = try await person.changes().syncToken
      for name in ["a", "b", "c"] { try await person.save(.create, name) }
      await first.service.shutdown()
      try FileManager.default.copyItem(at: folder, to: copy)

      let second = try await TestServer(folder: folder, seed: 2)
      person.server = second
      try await person.save(.forceUpdate, "a", ["n": .int64(1)])
      let page = try await person.changes(since: start, limit: 1)
      #expect(page.names == ["b"])
      await second.service.shutdown()
      try FileManager.default.removeItem(at: folder)
      try FileManager.default.copyItem(at: copy, to: folder)

      let third = try await TestServer(folder: folder, seed: 3)
      try third.service.storage.branchOff()
      person.server = third
      let error = await #expect(throws: ErrorDictionary.self) {
        try await person.changes(since: page.syncToken)
      }
      #expect(error?.extension?.code == .changeTokenExpired)
      await third.service.shutdown()
    }
  }
}
