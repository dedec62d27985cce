import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("Deletions in the feed of what this device is still sending")
struct TombstoneTests: SyncedPostTests {
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

  @Test("An object that an imported cascade deleted and another device restored is kept")
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
        edge.sentChange = .inBatch(7, .delete, properties: [])
        try session.metadata.update(edge)
        try session.metadata.keepGoneEdge(names.edge)
        _ = try session.applyGoneEdges(after: "", limit: 10)
        #expect(try session.metadata.edge(named: names.edge)?.pending == .save)
        #expect(try session.metadata.isGoneEdge(names.edge) == false)
      }
      #expect(try tagCount(phone) == 1)
    }
  }

  @Test("A link that is made again outlives the tombstone of a removal in doubt")
  func removalInDoubt() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        var edge = try #require(try session.metadata.edge(named: names.edge))
        edge.pending = .delete
        try session.metadata.update(edge)
        let batch = try #require(try session.assembleBatch(limits: .init()))
        edge = try #require(try session.metadata.edge(named: names.edge))
        edge.pending = .save
        try session.metadata.update(edge)
        try session.abandonInDoubt(batch)
        try session.noteDeletion(of: names.edge)
        _ = try session.applyGoneEdges(after: "", limit: 10)
        #expect(try session.metadata.edge(named: names.edge)?.pending == .save)
        let next = try #require(try session.assembleBatch(limits: .init()))
        #expect(next.operations.map(\.kind) == [.create])
      }
      #expect(try tagCount(phone) == 1)
    }
  }

  @Test(
    "A link that was made again during its removal outlives the tombstone in a later reading",
    arguments: [true, false]
  )
  func readAgain(hasReply: Bool) async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        var edge = try #require(try session.metadata.edge(named: names.edge))
        #expect(edge.stamps.created != nil)
        edge.pending = .delete
        try session.metadata.update(edge)
        let batch = try #require(try session.assembleBatch(limits: .init()))
        edge = try #require(try session.metadata.edge(named: names.edge))
        edge.pending = .save
        try session.metadata.update(edge)
        if hasReply {
          _ = try session.settle(batch, [.deleted], fetched: [:])
        } else {
          try session.abandonInDoubt(batch)
        }
        // The feed was read to its end; a new version of the app reads it from the start.
        try session.metadata.forgetRemovedEdges()
        try session.adoptModel()
        try session.noteDeletion(of: names.edge)
        _ = try session.applyGoneEdges(after: "", limit: 10)
        #expect(try session.metadata.edge(named: names.edge)?.pending == .save)
      }
      #expect(try tagCount(phone) == 1)
    }
  }

  @Test(
    "An object whose links alone were changed here is listed when another device deletes it",
    arguments: [true, false],
    [true, false]
  )
  func unsentLink(isMade: Bool, isCompared: Bool) async throws {
    try await with { phone, names in
      try phone.save { context in
        let post = try context.first("Post", "title", "a")
        let other = context.make("Tag", ["name": "other"])
        if isMade {
          post.mutableSetValue(forKey: "tags").add(other)
        } else {
          post.setValue(NSSet(), forKey: "tags")
        }
      }
      let kept = try phone.mirror.write(MirrorAuthor.importing) { session in
        try session.foldHistory()
        if isCompared { _ = try session.compareEdges(limit: 10) }
        try session.noteDeletion(of: names.post)
        var effect = ImportEffect()
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
        #expect(effect.deleted == [names.post])
        return try session.metadata.recoveredEdits().filter { $0.entityName == "Post" }
      }
      #expect(kept.map(\.record) == [names.post])
      var tags = 0
      if case .string(let list)? = kept.first?.fields["tags"] {
        tags = list.split(separator: "\n").count
      }
      #expect(tags == (isMade ? 2 : 0))
    }
  }

  @Test("An object with all its links sent is not listed when another device deletes it")
  func sentLinks() async throws {
    try await with { phone, names in
      let kept = try phone.mirror.write(MirrorAuthor.importing) { session in
        // The scan after an update has all links compared.
        try session.requestScan()
        while try session.scan(limit: 100) {}
        try session.noteDeletion(of: names.attachment)
        try session.noteDeletion(of: names.post)
        var effect = ImportEffect()
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
        #expect(Set(effect.deleted).contains(names.post))
        return try session.metadata.recoveredEdits()
      }
      #expect(kept.isEmpty)
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

  @Test("An edit that was not folded yet is kept where a lost zone's tombstone deletes its object")
  func editBeforeLoss() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) {
        for name in [names.post, names.attachment] { try $0.metadata.keepGoneRecord(name) }
      }
      try phone.save { try $0.first("Post", "title", "a").setValue("b", forKey: "title") }
      let kept = try phone.mirror.write(MirrorAuthor.reset) { session in
        try session.forgetZone()
        return try session.metadata.recoveredEdits().map { $0.fields.values["CD_title"] }
      }
      #expect(try phone.titles() == [])
      #expect(kept.contains(.string("b")))
    }
  }

  @Test("A link that a restored server lists as removed, which may have been made again, is kept")
  func madeAgainSinceBackup() async throws {
    try await with { phone, names in
      let kept = try phone.mirror.write(MirrorAuthor.importing) { session in
        try session.startRereading(.otherServer)
        try session.metadata.keepGoneEdge(names.edge)
        _ = try session.applyGoneEdges(after: "", limit: 10)
        return try session.metadata.recoveredEdits().count
      }
      #expect(try tagCount(phone) == 0)
      #expect(kept == 1)
    }
  }

  @Test("A link that was made again stays where another device made it too before the refusal")
  func linkedBeforeRefusal() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        var edge = try #require(try session.metadata.edge(named: names.edge))
        edge.pending = .delete
        try session.metadata.update(edge)
        let batch = try #require(try session.assembleBatch(limits: .init()))
        edge = try #require(try session.metadata.edge(named: names.edge))
        edge.pending = .save
        try session.metadata.update(edge)
        let other = CloudRecord(
          name: edge.name,
          recordType: MirrorNames.edgeType,
          tag: "other",
          fields: edge.edge.fields
        )
        try session.apply(records: [other], generation: 0)
        _ = try session.settle(batch, batch.operations.map { _ in .conflict(other) }, fetched: [:])
        #expect(try session.metadata.edge(named: names.edge)?.pending != .delete)
      }
      #expect(try tagCount(phone) == 1)
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

  @Test("An object whose new copy cannot be read outlives the deletion that an earlier page listed")
  func returnedUnreadable() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        try session.noteDeletion(of: names.post)
        try session.park([names.post: "A file is missing."], generation: 0)
        var effect = ImportEffect()
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
        #expect(try session.metadata.record(named: names.post) != nil)
        #expect(try session.metadata.isUnreadable(names.post))
      }
      #expect(try phone.titles() == ["a"])
      #expect(try attachmentCount(phone) == 1)
    }
  }
}
