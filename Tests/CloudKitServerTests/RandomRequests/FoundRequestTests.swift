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

  @Test(
    "A record that moves between two shares is in the feed also where a page ends at the move",
    arguments: [1, 2, 3]
  )
  func movedAtPageEnd(limit: Int) async throws {
    let server = try await TestServer()
    let owner = try await server.person("ada")
    let guest = try await server.person("bob")
    try await owner.makeZone()
    let zone = try await TestServer.zone.owned(by: owner)
    for root in ["a", "b"] { try await owner.save(.create, root) }
    _ = try await owner.modify([.make(.create, "leaf", parent: "a")])[0].get()
    for root in ["a", "b"] {
      _ = try await guest.accept(
        try await owner.share(root, "share-\(root)", publicPermission: .readOnly)
      )
    }
    var token: String?
    var names: Set<String> = []
    func read() async throws {
      var isMoreComing = true
      while isMoreComing {
        let page = try await guest.feed(zone, since: token, limit: limit)
        for record in page.records.compactMap(\.item) {
          let name = try #require(record.recordName)
          if record.deleted == true { names.remove(name) } else { names.insert(name) }
        }
        token = page.syncToken
        isMoreComing = page.moreComing == true
      }
    }
    try await read()
    names.remove("leaf")
    try await owner.save(.forceUpdate, "a", ["n": .int64(1)])
    _ = try await owner.modify([.make(.forceUpdate, "leaf", parent: "b")])[0].get()
    try await owner.save(.forceUpdate, "b", ["n": .int64(1)])
    try await read()
    #expect(names.contains("leaf"))
  }
}
