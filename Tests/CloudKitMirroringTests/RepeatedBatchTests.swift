import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Batches whose replies come late or never")
struct RepeatedBatchTests {
  private func with(
    _ body: (_ phone: ScriptedDevice, _ pad: TestDevice) async throws -> Void
  ) async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    let pad = try await world.device("pad")
    do {
      try await body(phone, pad)
    } catch {
      try? await phone.quit()
      try? await pad.quit()
      throw error
    }
    try await phone.quit()
    try await pad.quit()
  }

  /// The server has forgotten the reply, and refuses the batch for its tags.
  private func forgetReply(_ phone: ScriptedDevice) {
    phone.cloud.onModify { [cloud = phone.cloud] batch in
      cloud.onModify(nil)
      return batch.operations.map { _ in .conflict(nil) }
    }
    phone.faults.clear()
  }

  @Test("An edit that a repeated batch replaces after the server forgot its reply is kept")
  func forgottenReply() async throws {
    try await with { phone, pad in
      try phone.save { _ = $0.make("Post", ["title": "v0"]) }
      try await phone.settle(with: pad)
      try await phone.saveWithoutReply { context in
        try context.all("Post").first?.setValue("v1", forKey: "title")
      }
      try await pad.sync()
      #expect(try pad.titles() == ["v1"])
      try pad.save { try $0.all("Post").first?.setValue("v2", forKey: "title") }
      try await pad.sync()
      forgetReply(phone)
      try await phone.settle(with: pad)
      #expect(try phone.mirror.snapshot() == pad.snapshot())
      let kept = try phone.mirror.read { try $0.recoveredEdits() }
      #expect(kept.map { $0.fields["CD_title"] } == [.string("v2")])
    }
  }

  @Test("A repeated batch that the server's copy shows to be saved replaces no later edit")
  func savedBeforeForgotten() async throws {
    try await with { phone, pad in
      try phone.save { _ = $0.make("Post", ["title": "v0"]) }
      try await phone.settle(with: pad)
      try await phone.saveWithoutReply { context in
        let post = try #require(try context.all("Post").first)
        post.setValue("v1", forKey: "title")
        post.setValue(7, forKey: "views")
      }
      try await pad.sync()
      try pad.save { try $0.all("Post").first?.setValue("v2", forKey: "title") }
      try await pad.sync()
      forgetReply(phone)
      try await phone.settle(with: pad)
      #expect(try phone.titles() == ["v2"])
      #expect(try phone.mirror.snapshot() == pad.snapshot())
      let kept = try phone.mirror.read { try $0.recoveredEdits() }
      #expect(kept.map { $0.fields["CD_title"] } == [.string("v1")])
    }
  }

  /// Look-ups find the records, and not their files.
  private func hideCopies(_ phone: ScriptedDevice, afterTags: Bool) {
    phone.cloud.onLookup { [cloud = phone.cloud] names in
      let hidden = CloudLookup(
        unreadable: .init(uniqueKeysWithValues: names.map { ($0, "No file.") })
      )
      guard afterTags else { return hidden }
      cloud.onLookup { _ in hidden }
      return nil
    }
  }

  @Test(
    "A value that is set back stays where the server's copy cannot be read when the batch is repeated",
    arguments: [false, true]
  )
  func unreadableCopy(isRefused: Bool) async throws {
    try await with { phone, pad in
      try phone.save { _ = $0.make("Post", ["title": "before"]) }
      try await phone.settle(with: pad)
      try await phone.saveWithoutReply { context in
        try context.first("Post", "title", "before").setValue("after", forKey: "title")
      }
      hideCopies(phone, afterTags: isRefused)
      phone.cloud.onModify { [cloud = phone.cloud] batch in
        cloud.onModify { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: 0) }
        if isRefused { throw CloudFailure.tooLarge }
        return batch.operations.map { _ in .conflict(nil) }
      }
      // The feed is not read.
      await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
      try phone.save { try $0.first("Post", "title", "after").setValue("before", forKey: "title") }
      await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
      phone.cloud.onLookup(nil)
      phone.acceptAll()
      try await phone.settle(with: pad)
      #expect(try phone.titles() == ["before"])
      #expect(try pad.titles() == ["before"])
    }
  }

  @Test(
    "An edit that an update in doubt replaces is kept where the server's copy could not be read"
  )
  func unreadableLaterEdit() async throws {
    try await with { phone, pad in
      try phone.save { _ = $0.make("Post", ["title": "v0"]) }
      try await phone.settle(with: pad)
      try await phone.saveWithoutReply { context in
        try context.all("Post").first?.setValue("v1", forKey: "title")
      }
      try await pad.sync()
      try pad.save { try $0.all("Post").first?.setValue("v2", forKey: "title") }
      try await pad.sync()
      hideCopies(phone, afterTags: false)
      phone.cloud.onModify { batch in batch.operations.map { _ in .conflict(nil) } }
      await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
      phone.cloud.onLookup(nil)
      phone.acceptAll()
      try await phone.settle(with: pad)
      #expect(try phone.mirror.snapshot() == pad.snapshot())
      let kept = try phone.mirror.read { try $0.recoveredEdits() }
      let values = try Set(
        phone.titles().map { MirrorValue.string($0) } + kept.compactMap { $0.fields["CD_title"] }
      )
      #expect(values.contains(.string("v2")))
    }
  }

  @Test("Records that can never be looked up hold up no export")
  func failingLookUp() async throws {
    try await with { phone, pad in
      try await phone.settle(with: pad)
      try phone.mirror.write(MirrorAuthor.importing) { session in
        try session.metadata.keepUnreadable("N", reason: "A file is missing.")
      }
      phone.cloud.onLookup { _ in throw CloudFailure.busy(reason: "It failed.", retryAfter: nil) }
      await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
      phone.cloud.forgetCalls()
      try phone.save { _ = $0.make("Post", ["title": "a"]) }
      // The look-up is reported to each call that asks for one.
      _ = try? await phone.mirror.syncNow()
      _ = try? await phone.mirror.syncNow()
      #expect(phone.cloud.calls.contains("lookup"))
      #expect(phone.cloud.calls.contains("modify 1"))
      try await pad.sync()
      #expect(try pad.titles() == ["a"])
    }
  }

  @Test("The launches of another device do not displace the reply to a batch")
  func manyLaunches() async throws {
    let world = try await World(limits: { $0.sequenceDevices = 2 })
    let phone = try await ScriptedDevice("phone", in: world)
    var pad = try await world.device("pad")
    try phone.save { _ = $0.make("Post", ["title": "first"]) }
    try await phone.settle(with: pad)
    try await phone.saveWithoutReply { _ = $0.make("Post", ["title": "deleted"]) }
    try await pad.sync()
    try pad.save { context in
      context.delete(try context.first("Post", "title", "deleted"))
    }
    try await pad.sync()
    for launch in 1...4 {
      try await pad.quit()
      pad = try await world.device("pad")
      try pad.save { _ = $0.make("Post", ["title": "launch \(launch)"]) }
      try await pad.sync()
    }
    phone.acceptAll()
    try await phone.settle(with: pad)
    let titles = ["first"] + (1...4).map { "launch \($0)" }
    #expect(try pad.titles() == titles)
    #expect(try phone.titles() == titles)
    try await phone.quit()
    try await pad.quit()
  }

  @Test(
    "A backup with an open batch brings nothing back that was deleted since",
    arguments: [true, false]
  )
  func backupWithOpenBatch(isLaunchedAgain: Bool) async throws {
    let world = try await World()
    var phone = try await ScriptedDevice("phone", in: world)
    let pad = try await world.device("pad")
    try phone.save { context in
      _ = context.make("Post", ["title": "first"])
      _ = context.make("Tag", ["name": "t"])
    }
    try await phone.settle(with: pad)
    try await phone.saveWithoutReply { context in
      let tags = NSSet(array: try context.all("Tag"))
      context.make("Post", ["title": "deleted"]).setValue(tags, forKey: "tags")
      try context.first("Post", "title", "first").setValue(tags, forKey: "tags")
    }
    let backup = try StoreBackup(of: world.folder.appendingPathComponent("phone.sqlite"))
    phone.acceptAll()
    try await phone.settle(with: pad)
    if isLaunchedAgain {
      try await phone.quit()
      phone = try await ScriptedDevice("phone", in: world)
    }
    // The next batch acknowledges the reply to the one that the backup has.
    try phone.save { _ = $0.make("Post", ["title": "later"]) }
    try await phone.settle(with: pad)
    try pad.save { context in
      context.delete(try context.first("Post", "title", "deleted"))
      try context.first("Post", "title", "first").setValue(NSSet(), forKey: "tags")
    }
    try await phone.settle(with: pad)
    try await phone.quit()
    try backup.restore()
    phone = try await ScriptedDevice("phone", in: world)
    try await phone.settle(with: pad)
    #expect(try phone.titles() == ["first", "later"])
    #expect(try pad.titles() == ["first", "later"])
    #expect(try phone.mirror.snapshot() == pad.snapshot())
    let tags = try pad.save { context in
      (try context.first("Post", "title", "first").value(forKey: "tags") as? NSSet)?.count
    }
    #expect(tags == 0)
    #expect(try phone.mirror.read { try $0.openBatch() } == nil)
    try await phone.quit()
    try await pad.quit()
  }

  @Test(
    "A batch that is split after its connection broke takes no later edit back",
    arguments: [true, false]
  )
  func splitBatch(showsOthers: Bool) async throws {
    try await with { phone, pad in
      try phone.save { context in
        for title in ["a", "b"] { _ = context.make("Post", ["title": title]) }
      }
      try await phone.settle(with: pad)
      // Each request is executed, and the connection breaks before the reply.
      phone.cloud.onModify { [cloud = phone.cloud, faults = phone.faults] batch in
        let first = batch.sequence
        faults.add(.loseReply, to: "records/modify")
        faults.add(.loseRequest, to: "changes", count: .max)
        cloud.onModify { batch in
          guard batch.sequence == first else { return nil }
          throw CloudFailure.unreachable(reason: "The connection broke.")
        }
        return nil
      }
      try phone.save { context in
        for post in try context.all("Post") {
          let title = post.value(forKey: "title") as? String ?? ""
          post.setValue(title + "1", forKey: "title")
          // Another sent value shows that the server took the update.
          if showsOthers { post.setValue(7, forKey: "views") }
        }
      }
      await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
      try await pad.sync()
      #expect(try pad.titles() == ["a1", "b1"])
      try pad.save { try $0.first("Post", "title", "a1").setValue("a2", forKey: "title") }
      try await pad.sync()
      phone.faults.clear()
      for _ in 0..<12 { _ = try? await phone.mirror.syncNow() }
      try await phone.settle(with: pad)
      #expect(try phone.mirror.snapshot() == pad.snapshot())
      let kept = try phone.mirror.read { try $0.recoveredEdits() }
      let found = try pad.titles()
      // What does not stand is in the recovery list.
      #expect(found == (showsOthers ? ["a2", "b1"] : ["a1", "b1"]))
      #expect(kept.map { $0.fields["CD_title"] } == [.string(showsOthers ? "a1" : "a2")])
    }
  }

  @Test(
    "A late reply does not revert an edit that was imported meanwhile",
    arguments: [true, false]
  )
  func lateReply(isCreation: Bool) async throws {
    try await with { phone, pad in
      if !isCreation { try phone.save { _ = $0.make("Post", ["title": "v0"]) } }
      try await phone.settle(with: pad)
      try await phone.saveWithoutReply { context in
        let post = try isCreation ? context.make("Post") : #require(context.all("Post").first)
        post.setValue("v1", forKey: "title")
      }
      try await pad.sync()
      try pad.save { try $0.all("Post").first?.setValue("v2", forKey: "title") }
      try await pad.sync()
      // The later edit is imported while the batch is open.
      try await phone.importOnly()
      // The server answers the repeated batch from the reply that it kept.
      phone.cloud.onModify(nil)
      try await phone.settle(with: pad)
      #expect(try pad.titles() == ["v2"])
      #expect(try phone.mirror.snapshot() == pad.snapshot())
      #expect(try phone.mirror.read { try $0.unreadableCount() } == 0)
    }
  }

  @Test("A link whose creation is under way is not removed by an older tombstone of its name")
  func olderTombstone() async throws {
    try await with { phone, pad in
      try phone.save { context in
        _ = context.make("Post", ["title": "p"])
        _ = context.make("Tag", ["name": "t"])
      }
      try await phone.settle(with: pad)
      phone.cloud.onModify { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: 0) }
      try phone.save { context in
        let tag = try context.first("Tag", "name", "t")
        try context.first("Post", "title", "p").setValue(NSSet(object: tag), forKey: "tags")
      }
      await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
      await phone.mirror.stopAndFinish()
      try phone.mirror.write(MirrorAuthor.importing) { session in
        let metadata = session.metadata
        let open = try #require(try metadata.openBatch())
        let batch = try CloudBatch(encoded: open.payload)
        let name = try #require(batch.operations.first { $0.isEdge }).name
        try session.apply(records: [], deletedNames: [name], generation: 0)
        #expect(try session.applyGoneEdges(after: "", limit: 10) == nil)
        #expect(try metadata.edge(named: name)?.isLinked == true)
        try session.abandon(batch)
        #expect(try metadata.edge(named: name)?.pending == .save)
        #expect(try metadata.goneEdges(limit: 10).isEmpty)
      }
      let links = try phone.mirror.write(MirrorAuthor.importing) { session in
        let record = try #require(try session.metadata.record(entity: "Post", key: 1))
        return try session.metadata.edges(touching: record.name).filter(\.isLinked).count
      }
      #expect(links == 1)
    }
  }

  @Test("A link that another device removed before the reply arrived is removed here too")
  func removedBeforeReply() async throws {
    try await with { phone, pad in
      try phone.save { context in
        _ = context.make("Post", ["title": "p"])
        _ = context.make("Tag", ["name": "t"])
      }
      try await phone.settle(with: pad)
      try await phone.saveWithoutReply { context in
        let tag = try context.first("Tag", "name", "t")
        try context.first("Post", "title", "p").setValue(NSSet(object: tag), forKey: "tags")
      }
      try await pad.sync()
      try pad.save { context in
        let post = try context.first("Post", "title", "p")
        #expect((post.value(forKey: "tags") as? NSSet)?.count == 1)
        post.setValue(NSSet(), forKey: "tags")
      }
      try await pad.sync()
      try await phone.importOnly()
      phone.cloud.onModify(nil)
      try await phone.settle(with: pad)
      func expectNoLink(_ context: NSManagedObjectContext) throws {
        let post = try context.first("Post", "title", "p")
        #expect((post.value(forKey: "tags") as? NSSet)?.count == 0)
      }
      try phone.save { try expectNoLink($0) }
      try pad.save { try expectNoLink($0) }
      #expect(try phone.mirror.read { try $0.goneEdges(limit: 10) }.isEmpty)
    }
  }
}
