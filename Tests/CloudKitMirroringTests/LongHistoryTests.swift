import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("How much of the history one write transaction folds")
struct LongHistoryTests {
  /// More than two transactions fold.
  private static let count = 2 * MirrorSession.foldLimit + 200

  private func insertMany(_ device: ScriptedDevice) throws {
    try device.save { context in
      for number in 0..<Self.count { _ = context.make("Tag", ["name": "\(number)"]) }
    }
  }

  /// Has the store count the records that are added between two moves of the position in the history, which the
  /// transaction that folds moves last.
  private func countRecords(_ device: ScriptedDevice) throws {
    try device.mirror.write(MirrorAuthor.setup) { session in
      try session.rows.connection.execute(
        "CREATE TABLE TESTNOTE (TRANSACTIONNUMBER, CHANGENUMBER)"
      )
      try session.rows.connection.execute(
        """
        CREATE TRIGGER TESTTRIGGER AFTER INSERT ON WSMIRROR_RECORD BEGIN
          INSERT INTO TESTNOTE VALUES (
            (SELECT VALUE FROM WSMIRROR_META WHERE KEY = 'historyTransaction'),
            (SELECT VALUE FROM WSMIRROR_META WHERE KEY = 'historyChange'));
        END
        """
      )
    }
  }

  private func counts(_ device: ScriptedDevice) throws -> [Int] {
    try device.mirror.read { metadata in
      try metadata.connection.query(
        "SELECT COUNT(*) FROM TESTNOTE GROUP BY TRANSACTIONNUMBER, CHANGENUMBER ORDER BY MIN(rowid)"
      ) { Int($0.int64(0)) }
    }
  }

  @Test("An export folds a large save in parts")
  func export() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    try countRecords(phone)
    try insertMany(phone)
    try await phone.sync()
    #expect(try counts(phone) == [500, 500, 200])
    let pad = try await world.device("pad")
    try await pad.sync()
    #expect(try pad.snapshot() == phone.mirror.snapshot())
    try await phone.quit()
    try await pad.quit()
  }

  @Test("A page is applied once a long history is folded, with the last part of it")
  func importing() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    let pad = try await world.device("pad")
    try phone.save { _ = $0.make("Post", ["title": "a", "views": 1]) }
    try await phone.settle(with: pad)
    try countRecords(phone)
    try pad.save { context in
      let post = try context.first("Post", "title", "a")
      post.setValue("other", forKey: "title")
      post.setValue(2, forKey: "views")
    }
    try await pad.sync()
    // The edit is the last change of the history.
    phone.faults.isOnline = false
    try insertMany(phone)
    try phone.save { try $0.first("Post", "title", "a").setValue("own", forKey: "title") }
    phone.faults.isOnline = true
    try await phone.settle(with: pad)
    #expect(try counts(phone).prefix(3) == [500, 500, 200])
    #expect(try phone.titles() == ["own"])
    #expect(try pad.titles() == ["own"])
    #expect(try pad.snapshot() == phone.mirror.snapshot())
    try await phone.quit()
    try await pad.quit()
  }

  @Test("A deletion and its undo in different parts of the history leave the object its record")
  func undoneDeletion() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { _ = $0.make("Post", ["title": "old"]) }
    try await phone.sync()
    func record() throws -> RecordMetadata? {
      try phone.mirror.read { metadata in
        try metadata.records(entity: "Post", after: 0, limit: 1).first
      }
    }
    let name = try #require(try record()?.name)
    phone.faults.isOnline = false
    try phone.save { context in
      let manager = UndoManager()
      manager.groupsByEvent = false
      context.undoManager = manager
      let post = try context.first("Post", "title", "old")
      manager.beginUndoGrouping()
      context.delete(post)
      manager.endUndoGrouping()
      try context.save()
      context.undo()
      manager.disableUndoRegistration()
      post.setValue("new", forKey: "title")
      try context.save()
    }
    // The deletion alone, then its undo.
    for _ in 0..<2 {
      try phone.mirror.write(MirrorAuthor.exporting) { _ = try $0.foldHistory(limit: 1) }
    }
    let kept = try #require(try record())
    #expect(kept.name == name && kept.tag != nil && kept.pending == .save)
    phone.faults.isOnline = true
    let pad = try await world.device("pad")
    try await phone.settle(with: pad)
    #expect(try pad.titles() == ["new"])
    try await phone.quit()
    try await pad.quit()
  }

  @Test("A position between two changes of one save outlives a launch")
  func position() async throws {
    let world = try await World()
    var phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    try insertMany(phone)
    let first = try phone.mirror.write(MirrorAuthor.setup) { try $0.foldHistory(limit: 10) }
    #expect(first.changes == 10)
    #expect(!first.isComplete)
    let names = try phone.mirror.read { metadata in
      try (1...Int64(Self.count)).compactMap { try metadata.recordName(entity: "Tag", key: $0) }
    }
    #expect(names.count == 10)
    try await phone.quit()
    phone = try await ScriptedDevice("phone", in: world, isStarted: false)
    try countRecords(phone)
    let second = try phone.mirror.write(MirrorAuthor.setup) { try $0.foldHistory(limit: 10) }
    #expect(second.changes == 10)
    #expect(!second.isComplete)
    #expect(try counts(phone) == [10])
    let all = try phone.mirror.snapshot()
    #expect(all.count == Self.count)
    #expect(Set(names).isSubset(of: all.keys))
    #expect(try counts(phone).max() == 500)
    try await phone.quit()
  }

  @Test("The opening of a store with a new model folds no long history")
  func newModel() async throws {
    func model(_ names: [String]) -> NSManagedObjectModel {
      let model = NSManagedObjectModel()
      model.entities = [
        BlogModel.entity("Tag", names.map { BlogModel.attribute($0, .stringAttributeType) })
      ]
      return model
    }
    let world = try await World(model: model(["name"]))
    var phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    try insertMany(phone)
    try await phone.quit()
    let later = try await World(model: model(["name", "color"]), folder: world.folder)
    phone = try await ScriptedDevice("phone", in: later, isStarted: false)
    let named = try phone.mirror.read { metadata in
      try (1...Int64(Self.count)).compactMap { try metadata.recordName(entity: "Tag", key: $0) }
    }
    #expect(named.isEmpty)
    try countRecords(phone)
    while try phone.mirror.write(MirrorAuthor.setup, { try $0.scan(limit: 500) }) {}
    #expect(try counts(phone) == [500, 500, 200])
    #expect(try phone.mirror.snapshot().count == Self.count)
    try await phone.quit()
  }
}
