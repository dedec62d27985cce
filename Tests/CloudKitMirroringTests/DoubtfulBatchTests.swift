import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCloudKit
import OpenCoreData
import Synchronization
import Testing

@Suite("Batches of which it is not known whether the server has them")
struct DoubtfulBatchTests {
  private func refuse(_ phone: ScriptedDevice) {
    phone.cloud.onModify { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: 0) }
  }

  @Test("An edit that equals another device's does not show that its batch was saved")
  func sameValue() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    let pad = try await world.device("pad")
    try phone.save { _ = $0.make("Post", ["title": "t", "views": 0]) }
    try await phone.sync()
    try await pad.sync()
    refuse(phone)
    try phone.save { context in
      let post = try context.first("Post", "title", "t")
      post.setValue(1, forKey: "views")
      post.setValue("x", forKey: "title")
    }
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    try pad.save { try $0.first("Post", "title", "t").setValue(1, forKey: "views") }
    try await pad.sync()
    // The other edit is imported while the batch is open. The first call may join an earlier round.
    for _ in 0..<2 {
      await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    }
    #expect(try phone.mirror.read { try $0.openBatch() } != nil)
    #expect(try phone.titles() == ["x"])
    phone.cloud.onModify(nil)
    try await phone.sync()
    try await pad.sync()
    #expect(try phone.titles() == ["x"])
    #expect(try pad.titles() == ["x"])
    try await phone.quit()
    try await pad.quit()
  }

  @Test("An object whose creation was abandoned without a reply keeps its later edit")
  func creationGivenUp() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    refuse(phone)
    try phone.save { _ = $0.make("Post", ["title": "v1"]) }
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    await phone.mirror.stopAndFinish()
    let batch = try phone.mirror.write(MirrorAuthor.exporting) { session in
      let open = try #require(try session.metadata.openBatch())
      let batch = try CloudBatch(encoded: open.payload)
      try session.abandon(batch)
      try session.noteDoubt(about: batch)
      return batch
    }
    try phone.save { try $0.first("Post", "title", "v1").setValue("v2", forKey: "title") }
    try phone.mirror.write(MirrorAuthor.setup) { session in
      // The app is launched again.
      try session.noteOpening()
      try session.nameUnsent()
      let sent = batch.operations[0]
      let record = CloudRecord(
        name: sent.name,
        recordType: sent.recordType,
        tag: "1",
        fields: sent.set
      )
      try session.apply(records: [record], generation: 0)
      let known = try #require(try session.metadata.record(named: sent.name))
      #expect(known.pending == .save)
      #expect(known.properties == ["title"])
      #expect(known.sentKind == .nothing)
      #expect(try session.metadata.recoveredEdits().isEmpty)
    }
    #expect(try phone.titles() == ["v2"])
    try await phone.quit()
  }

  @Test("An update that was executed and abandoned without its reply takes no later edit back")
  func updateGivenUp() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    let pad = try await world.device("pad")
    try phone.save { _ = $0.make("Post", ["title": "before"]) }
    try await phone.sync()
    let attempts = Mutex(0)
    phone.cloud.onModify { [cloud = phone.cloud, faults = phone.faults] _ in
      let number = attempts.withLock { attempts in
        attempts += 1
        return attempts
      }
      guard number > 3 else { throw CloudFailure.unreachable(reason: "The connection broke.") }
      // This one is executed, and its reply is lost.
      faults.add(.loseReply, to: "records/modify")
      cloud.onModify { _ in throw CloudFailure.unreachable(reason: "The connection broke.") }
      return nil
    }
    try phone.save { try $0.first("Post", "title", "before").setValue("after", forKey: "title") }
    for _ in 0..<12 {
      _ = try? await phone.mirror.syncNow()
      if try phone.mirror.read({ try $0.openBatch() }) == nil { break }
    }
    #expect(try phone.mirror.read { try $0.openBatch() } == nil)
    try phone.save { try $0.first("Post", "title", "after").setValue("before", forKey: "title") }
    phone.cloud.onModify(nil)
    for _ in 0..<2 {
      try await phone.sync()
      try await pad.sync()
    }
    #expect(try phone.titles() == ["before"])
    #expect(try pad.titles() == ["before"])
    try await phone.quit()
    try await pad.quit()
  }

  @Test(
    "A record that was imported after its deletion was sent is looked up when the reply arrives"
  )
  func restoredSinceDeletion() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { _ = $0.make("Post", ["title": "t"]) }
    try await phone.sync()
    refuse(phone)
    try phone.save { context in context.delete(try context.first("Post", "title", "t")) }
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    await phone.mirror.stopAndFinish()
    try phone.mirror.write(MirrorAuthor.importing) { session in
      let open = try #require(try session.metadata.openBatch())
      let batch = try CloudBatch(encoded: open.payload)
      let name = batch.operations[0].name
      let restored = CloudRecord(
        name: name,
        recordType: "CD_Post",
        tag: "restored",
        fields: FieldBag(["CD_entityName": .string("Post"), "CD_title": .string("t")])
      )
      let generation = try session.metadata.zone(MirrorNames.zone).generation
      try session.apply(records: [restored], generation: generation)
      let settled = try session.settle(batch, [.deleted], fetched: [:])
      #expect(settled.doubtful == [name])
      #expect(try session.metadata.isUnreadable(name))
      // The look-up finds it.
      try session.apply(records: [restored], generation: generation)
    }
    #expect(try phone.titles() == ["t"])
    try await phone.quit()
  }

  @Test("A creation that was open when its zone was lost replaces no later value")
  func openWhenZoneWasLost() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    let pad = try await world.device("pad")
    try await phone.sync()
    try await pad.sync()
    phone.cloud.onModify { [cloud = phone.cloud, faults = phone.faults] _ in
      faults.add(.loseReply, to: "records/modify")
      faults.add(.loseRequest, to: "changes", count: .max)
      cloud.onModify { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: 0) }
      return nil
    }
    try phone.save { _ = $0.make("Post", ["title": "v1"]) }
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    try await pad.sync()
    #expect(try pad.titles() == ["v1"])
    try await world.deleteZone()
    try pad.save { try $0.first("Post", "title", "v1").setValue("v9", forKey: "title") }
    try await pad.sync()
    // The device finds the zone lost while its batch is still open.
    phone.faults.clear()
    for _ in 0..<2 { _ = try? await phone.mirror.syncNow() }
    #expect(try phone.mirror.read { try $0.openBatch() } == nil)
    phone.cloud.onModify(nil)
    for _ in 0..<2 {
      try await phone.sync()
      try await pad.sync()
    }
    #expect(try phone.titles() == ["v9"])
    #expect(try pad.titles() == ["v9"])
    try await phone.quit()
    try await pad.quit()
  }
}
