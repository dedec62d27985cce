import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("History that another process deleted before it was read")
struct HistoryGapTests {
  /// Edits the file without the mirror's store, and deletes the history of the edit.
  private func editWithoutHistory(
    _ url: URL,
    _ model: NSManagedObjectModel,
    _ body: (NSManagedObjectContext) throws -> Void
  ) throws {
    try editStore(at: url, model) { context in
      try body(context)
      try context.save()
      try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: .distantFuture))
    }
  }

  @Test("An edit in it stands against a record that is imported next")
  func edit() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    let url = world.folder.appendingPathComponent("phone.sqlite")
    try editWithoutHistory(url, world.model) {
      try $0.first("Post", "title", "a").setValue("b", forKey: "title")
    }
    try phone.mirror.writeFolded(MirrorAuthor.importing) { session in
      let known = try #require(try session.metadata.record(entity: "Post", key: 1))
      var fields = try #require(known.base)
      fields.values["CD_content"] = .string("of another device")
      let record = CloudRecord(
        name: known.name,
        recordType: "CD_Post",
        tag: "other",
        fields: fields
      )
      try session.apply(records: [record], generation: 0)
    }
    #expect(try phone.titles() == ["b"])
    try await phone.quit()
  }
}
