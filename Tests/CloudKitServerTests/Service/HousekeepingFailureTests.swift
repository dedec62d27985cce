import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Housekeeping when a step fails", .everyEngine)
struct HousekeepingFailureTests {
  @Test("Containers whose erasing fails are all named, and stop neither the others' nor the purges")
  func continues() async throws {
    let server = try await TestServer(limits: { $0.purgeDelay = 0 })
    let service = server.service
    _ = try await server.person()
    try await service.write {
      var batch = WriteBatch()
      batch.savedEntries = [
        DirectoryEntry(SchemaErasing.key("a.broken"), body: Data("?".utf8)),
        DirectoryEntry(SchemaErasing.key("b.broken"), body: Data("?".utf8)),
        DirectoryEntry(
          SchemaErasing.key("z.whole"),
          body: Data(#"{"types":["Gone"],"strippedTypes":[]}"#.utf8)
        ),
      ]
      return (batch, ())
    }
    try await service.accounts.delete("ada")
    let failure = await #expect(throws: EveryStep.Failure.self) { try await service.housekeep() }
    for name in ["erasings of schema imports", "a.broken", "b.broken"] {
      #expect(failure?.description.contains(name) == true, "\(String(describing: failure))")
    }
    #expect(try service.storage.read { try $0.account(userName: "ada") } == nil)
    #expect(try service.storage.read { try $0.entry(SchemaErasing.key("z.whole")) } == nil)
    #expect(try service.storage.read { try $0.entry(SchemaErasing.key("a.broken")) } != nil)
  }
}
