import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("Deletions in the feed of what this device is still sending")
struct TombstoneTests {
  /// A stopped mirror of a store with a synced post, which has an attachment and a tag.
  private func with(
    _ body: (_ phone: ScriptedDevice, _ names: Names) throws -> Void
  ) async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { context in
      let tag = context.make("Tag", ["name": "t"])
      let post = context.make("Post", ["title": "a"])
      post.setValue(NSSet(object: tag), forKey: "tags")
      context.make("Attachment", ["name": "file"]).setValue(post, forKey: "post")
    }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    let names = try phone.mirror.read { metadata in
      let post = try #require(try metadata.record(entity: "Post", key: 1))
      let attachment = try #require(try metadata.record(entity: "Attachment", key: 1))
      let edge = try #require(try metadata.edges(touching: post.name).first)
      return Names(post: post.name, attachment: attachment.name, edge: edge.name)
    }
    try body(phone, names)
    try await phone.quit()
  }

  private struct Names {
    var post: String
    var attachment: String
    var edge: String
  }

  /// The record that another device has sent for an object of this store.
  private func sent(
    _ record: RecordMetadata,
    _ changes: [String: MirrorValue] = [:]
  ) throws -> CloudRecord {
    var fields = try #require(record.base)
    for (key, value) in changes { fields.values[key] = value }
    return CloudRecord(
      name: record.name,
      recordType: record.recordType,
      tag: "other",
      fields: fields
    )
  }

  private func tagCount(_ phone: ScriptedDevice) throws -> Int {
    var count = 0
    try phone.save { context in
      count = (try context.all("Post").first?.value(forKey: "tags") as? NSSet)?.count ?? 0
    }
    return count
  }

  private func attachmentCount(_ phone: ScriptedDevice) throws -> Int {
    var count = 0
    try phone.save { count = try $0.all("Attachment").count }
    return count
  }

  @Test("An object that a migration dropped before it was sent again is not deleted elsewhere")
  func droppedByMigration() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.reset) { session in
        let record = try #require(try session.metadata.record(named: names.attachment))
        try session.forgetZone()
        var dropped = try #require(try session.metadata.record(named: names.attachment))
        dropped.key = nil
        try session.metadata.update(dropped)
        let batch = try #require(try session.assembleBatch(limits: .init()))
        #expect(!batch.operations.contains { $0.name == names.attachment })
        try session.abandon(batch)
        try session.apply(records: [sent(record)], generation: 0)
        #expect(try session.metadata.record(named: names.attachment)?.pending == .nothing)
      }
    }
  }

  @Test("What an imported deletion deletes too stays after its restoration elsewhere")
  func restoredElsewhere() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        let record = try #require(try session.metadata.record(named: names.attachment))
        try session.forgetZone()
        for name in [names.post, names.attachment] { try session.metadata.keepGoneRecord(name) }
        var effect = ImportEffect()
        // The owner's deletion comes first, regardless of the order of their names.
        try session.metadata.forgetGoneRecord(names.attachment)
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
        #expect(try session.metadata.record(named: names.attachment) == nil)
        try session.apply(records: [sent(record)], generation: 0)
        #expect(try session.metadata.record(named: names.attachment)?.pending == .nothing)
      }
      #expect(try attachmentCount(phone) == 1)
    }
  }

  /// Unlinks the post and the tag here, as sent, and links them again.
  private func makeAgain(_ session: MirrorSession, _ name: String) throws -> EdgeMetadata {
    try session.metadata.keepRemovedEdge(name)
    var edge = try #require(try session.metadata.edge(named: name))
    edge.tag = nil
    edge.stamps = RecordStamps()
    edge.pending = .save
    try session.metadata.update(edge)
    return edge
  }

  @Test("A link that was made again stays after a batch in doubt and the device's own tombstone")
  func ownTombstone() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        _ = try makeAgain(session, names.edge)
        let batch = try #require(try session.assembleBatch(limits: .init()))
        #expect(batch.operations.map(\.name) == [names.edge])
        try session.abandonInDoubt(batch)
        try session.metadata.keepGoneEdge(names.edge)
        _ = try session.applyGoneEdges(after: "", limit: 10)
        #expect(try session.metadata.edge(named: names.edge)?.pending == .save)
      }
      #expect(try tagCount(phone) == 1)
    }
  }

  @Test("A link of a batch in doubt that another device has removed since is not made again")
  func removedElsewhere() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        var edge = try #require(try session.metadata.edge(named: names.edge))
        edge.tag = nil
        edge.pending = .save
        try session.metadata.update(edge)
        let batch = try #require(try session.assembleBatch(limits: .init()))
        try session.metadata.keepGoneEdge(names.edge)
        // It waits for the reply.
        _ = try session.applyGoneEdges(after: "", limit: 10)
        #expect(try session.metadata.edge(named: names.edge) != nil)
        try session.abandonInDoubt(batch)
        #expect(try session.metadata.edge(named: names.edge) == nil)
      }
      #expect(try tagCount(phone) == 0)
    }
  }

  @Test("A link whose own tombstone waits stays in a batch in doubt")
  func ownTombstoneWaits() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        _ = try makeAgain(session, names.edge)
        let batch = try #require(try session.assembleBatch(limits: .init()))
        try session.metadata.keepGoneEdge(names.edge)
        _ = try session.applyGoneEdges(after: "", limit: 10)
        // The feed ends, and is read again.
        try session.metadata.forgetRemovedEdges()
        try session.abandonInDoubt(batch)
        #expect(try session.metadata.edge(named: names.edge)?.pending == .save)
      }
      #expect(try tagCount(phone) == 1)
    }
  }

  @Test("A link that is made again while its removal has no reply outlives its tombstone")
  func removalWithoutReply() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        var edge = try #require(try session.metadata.edge(named: names.edge))
        edge.pending = .save
        edge.sentKind = .delete
        edge.sequence = 7
        try session.metadata.update(edge)
        try session.metadata.keepGoneEdge(names.edge)
        _ = try session.applyGoneEdges(after: "", limit: 10)
        #expect(try session.metadata.edge(named: names.edge)?.pending == .save)
        #expect(try session.metadata.isGoneEdge(names.edge) == false)
      }
      #expect(try tagCount(phone) == 1)
    }
  }

  @Test("An object that is restored while its deletion has no reply outlives its tombstone")
  func deletionWithoutReply() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        var record = try #require(try session.metadata.record(named: names.post))
        record.pending = .save
        record.properties = ["title"]
        record.sentKind = .delete
        record.sequence = 7
        try session.metadata.update(record)
        try session.metadata.keepGoneRecord(names.post)
        var effect = ImportEffect()
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
        #expect(try session.metadata.record(named: names.post)?.pending == .save)
        #expect(try session.metadata.isGoneRecord(names.post) == false)
      }
      #expect(try phone.titles() == ["a"])
    }
  }

  @Test("A tombstone of a link in a new zone is not taken for one of the lost zone")
  func newZone() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        try session.metadata.keepRemovedEdge(names.edge)
        try session.forgetZone()
        try session.metadata.keepGoneEdge(names.edge)
        _ = try session.applyGoneEdges(after: "", limit: 10)
        #expect(try session.metadata.edge(named: names.edge) == nil)
      }
      #expect(try tagCount(phone) == 0)
    }
  }

  @Test("A deletion of what is sent again counts although the app was updated meanwhile")
  func deletedDuringUpdate() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        try session.forgetZone()
        try session.adoptModel()
        for name in [names.post, names.attachment] { try session.metadata.keepGoneRecord(name) }
        var effect = ImportEffect()
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 1, &effect)
        #expect(try session.metadata.record(named: names.post) == nil)
        #expect(try session.metadata.record(named: names.attachment) == nil)
      }
      #expect(try phone.titles() == [])
    }
  }

  @Test("A restored object's batch in doubt does not make its values agreed ones")
  func restoredInDoubt() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        var record = try #require(try session.metadata.record(named: names.post))
        let other = try sent(record, ["CD_title": .string("restored there")])
        // As a restoration leaves it.
        record.tag = nil
        record.stamps = RecordStamps()
        record.base = FieldBag()
        record.pending = .save
        record.properties = ["title"]
        try session.metadata.update(record)
        let batch = try #require(try session.assembleBatch(limits: .init()))
        try session.abandonInDoubt(batch)
        try session.apply(records: [other], generation: 0)
        let kept = try session.metadata.recoveredEdits().map { $0.fields.values["title"] }
        let known = try #require(try session.metadata.record(named: names.post))
        #expect(known.pending == .save || kept.contains(.string("a")))
      }
    }
  }

  @Test("The deletion of an owner waits for all moves of more members than a batch may have")
  func manyMoves() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { context in
      let post = context.make("Post", ["title": "former"])
      _ = context.make("Post", ["title": "new"])
      for number in 0..<5 {
        context.make("Attachment", ["name": "\(number)"]).setValue(post, forKey: "post")
      }
    }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    try phone.save { context in
      let (former, new) = (
        try context.first("Post", "title", "former"), try context.first("Post", "title", "new")
      )
      for attachment in try context.all("Attachment") { attachment.setValue(new, forKey: "post") }
      context.processPendingChanges()
      context.delete(former)
    }
    var kinds: [[CloudOperation.Kind]] = []
    try phone.mirror.write(MirrorAuthor.exporting) { session in
      try session.foldHistory()
      while let batch = try session.assembleBatch(limits: .init(operations: 2)) {
        kinds.append(batch.operations.map(\.kind))
        let outcomes = batch.operations.map { operation in
          operation.kind == .delete
            ? CloudOutcome.deleted
            : .saved(tag: "\(operation.name) \(kinds.count)", stamps: RecordStamps())
        }
        _ = try session.settle(batch, outcomes, fetched: [:])
      }
    }
    #expect(kinds == [[.update, .update], [.update, .update], [.update, .delete]])
    try await phone.quit()
  }
}
