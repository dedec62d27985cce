import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("An object that is restored while its deletion is on its way, or after it")
struct RestoredObjectTests: SyncedPostTests {
  @Test("An object that is restored while its deletion has no reply outlives its tombstone")
  func deletionWithoutReply() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        var record = try #require(try session.metadata.record(named: names.post))
        record.pending = .save
        record.properties = ["title"]
        record.sentChange = .inBatch(7, .delete, properties: [])
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

  /// A restoration while the deletion is on its way, whose first reply is lost.
  private func restoreDuringDeletion(_ session: MirrorSession, _ name: String) throws -> CloudBatch
  {
    var record = try #require(try session.metadata.record(named: name))
    record.pending = .delete
    try session.metadata.update(record)
    let batch = try #require(try session.assembleBatch(limits: .init()))
    record = try #require(try session.metadata.record(named: name))
    record.pending = .save
    record.properties = ["title"]
    try session.metadata.update(record)
    return batch
  }

  @Test("A restored object stays although another device edited it before the deletion was refused")
  func editedBeforeRefusal() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        let batch = try restoreDuringDeletion(session, names.post)
        let known = try #require(try session.metadata.record(named: names.post))
        let edited = try sent(known, ["CD_content": .string("edited elsewhere")])
        try session.apply(records: [edited], generation: 0)
        _ = try session.settle(batch, batch.operations.map { _ in .conflict(edited) }, fetched: [:])
        #expect(try session.metadata.record(named: names.post)?.pending != .delete)
        let next = try session.assembleBatch(limits: .init())
        #expect(next?.operations.contains { $0.kind == .delete } != true)
      }
      #expect(try phone.titles() == ["a"])
    }
  }

  @Test("A sweep leaves an object that was restored while its deletion is on its way")
  func sweptDuringDeletion() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        _ = try restoreDuringDeletion(session, names.post)
        try session.startRereading(.expired)
        let generation = try session.metadata.zone(MirrorNames.zone).generation
        var effect = ImportEffect()
        var position = SweepPosition()
        while try session.sweepMissing(
          generation: generation,
          limit: 10,
          guard: .init(),
          from: &position,
          &effect
        ) {}
      }
      #expect(try phone.titles() == ["a"])
    }
  }

  @Test(
    "A restored object outlives its own tombstone while its creation has no reply, and in doubt",
    arguments: [false, true]
  )
  func ownTombstoneOfRestored(isInDoubt: Bool) async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        var record = try #require(try session.metadata.record(named: names.post))
        // As the reply to its deletion leaves a restored one.
        record.tag = nil
        record.stamps = RecordStamps()
        record.base = FieldBag()
        record.pending = .save
        record.properties = ["title"]
        try session.metadata.update(record)
        let batch = try #require(try session.assembleBatch(limits: .init()))
        if isInDoubt { try session.abandonInDoubt(batch) }
        try session.metadata.keepGoneRecord(names.post)
        var effect = ImportEffect()
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
      }
      #expect(try phone.titles() == ["a"])
    }
  }

  @Test("A restored object outlives its tombstone after the batch of its deletion was in doubt")
  func restoredAfterDeletionInDoubt() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        let batch = try restoreDuringDeletion(session, names.post)
        try session.abandonInDoubt(batch)
        // The server has executed it, which the feed shows.
        try session.noteDeletion(of: names.post)
        var effect = ImportEffect()
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
        let known = try #require(try session.metadata.record(named: names.post))
        #expect(known.pending == .save && known.tag == nil)
        let next = try #require(try session.assembleBatch(limits: .init()))
        let creation = try #require(next.operations.first { $0.name == names.post })
        #expect(creation.kind == .create)
        #expect(creation.set.values["CD_title"] == .string("a"))
      }
      #expect(try phone.titles() == ["a"])
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
        let kept = try session.metadata.recoveredEdits().map { $0.fields.values["CD_title"] }
        let known = try #require(try session.metadata.record(named: names.post))
        #expect(known.pending == .save || kept.contains(.string("a")))
      }
    }
  }

  /// The post of a session as one that was restored after its deletion, in a batch that creates it.
  private func batchOfRestored(_ session: MirrorSession, _ name: String) throws -> CloudBatch {
    var record = try #require(try session.metadata.record(named: name))
    record.tag = nil
    record.stamps = RecordStamps()
    record.base = FieldBag()
    record.pending = .save
    record.properties = ["title"]
    try session.metadata.update(record)
    return try #require(try session.assembleBatch(limits: .init()))
  }

  @Test(
    "Another device's deletion of a restored object counts although its creation had no reply yet"
  )
  func deletedBeforeReply() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        let batch = try batchOfRestored(session, names.post)
        var effect = ImportEffect()
        // The feed is read while the batch is open.
        try session.noteDeletion(of: names.post)
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
        #expect(try session.metadata.record(named: names.post) != nil)
        let saved = CloudOutcome.saved(tag: "restored", stamps: RecordStamps())
        let settled = try session.settle(batch, batch.operations.map { _ in saved }, fetched: [:])
        #expect(settled.doubtful == [names.post])
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
        #expect(try session.metadata.record(named: names.post) != nil)
        // The look-up finds no record.
        try session.metadata.forgetUnreadable(names.post)
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
      }
      #expect(try phone.titles() == [])
    }
  }

  @Test("A restored object stays if the look-up after its reply finds it")
  func ownTombstoneBeforeReply() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        let agreed = try #require(try session.metadata.record(named: names.post))
        let batch = try batchOfRestored(session, names.post)
        var effect = ImportEffect()
        try session.noteDeletion(of: names.post)
        let saved = CloudOutcome.saved(tag: "other", stamps: RecordStamps())
        _ = try session.settle(batch, batch.operations.map { _ in saved }, fetched: [:])
        try session.apply(records: [sent(agreed)], generation: 0)
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
        #expect(try !session.metadata.isGoneRecord(names.post))
      }
      #expect(try phone.titles() == ["a"])
    }
  }

  @Test("A deletion that was listed before a restored object's batch failed is the former one")
  func failedAfterTombstone() async throws {
    try await with { phone, names in
      try phone.mirror.write(MirrorAuthor.importing) { session in
        let batch = try batchOfRestored(session, names.post)
        var effect = ImportEffect()
        try session.noteDeletion(of: names.post)
        _ = try session.settle(batch, batch.operations.map { _ in .batchFailed }, fetched: [:])
        _ = try session.applyGoneRecords(after: "", limit: 10, generation: 0, &effect)
        let next = try #require(try session.assembleBatch(limits: .init()))
        #expect(next.operations.contains { $0.name == names.post && $0.kind == .create })
      }
      #expect(try phone.titles() == ["a"])
    }
  }
}
