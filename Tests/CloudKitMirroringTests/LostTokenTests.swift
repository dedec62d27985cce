import CloudKitMirroring
import CloudKitServer
import CloudKitTesting
import Effects
import Foundation
import OpenCoreData
import Synchronization
import Testing

@Suite("A change token that is no longer valid")
struct LostTokenTests {
  /// The machine's clock, advanced by the test.
  private final class MovedClock: EffectClock {
    private let offset = Mutex(0.0)

    var now: Date { Date().addingTimeInterval(offset.withLock { $0 }) }
    var uptime: Double { ProcessInfo.processInfo.systemUptime + offset.withLock { $0 } }

    func sleep(seconds: Double) async throws { try await LiveClock().sleep(seconds: seconds) }

    func move(seconds: Double) { offset.withLock { $0 += seconds } }
  }

  /// Runs the body with a server that was restored from a backup.
  ///
  /// `fill` is saved before the backup and `change` after it, both by the phone and read by the pad. The
  /// body gets the restored server, with the stores of both, and what the pad had last.
  private func withRestoredServer(
    fill: (NSManagedObjectContext) throws -> Void,
    change: (NSManagedObjectContext) throws -> Void,
    _ body: (World, _ before: [String: [String: String]]) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("restored-" + UUID().uuidString)
    let backup = folder.appendingPathExtension("backup")
    defer {
      for url in [folder, backup] { try? FileManager.default.removeItem(at: url) }
    }
    let first = try await World(dataFolder: folder)
    var (phone, pad) = (try await first.device("phone"), try await first.device("pad"))
    try phone.save(fill)
    try await first.settle(phone, pad)
    await first.cloud.shutdown()
    try FileManager.default.copyItem(at: folder, to: backup)
    // The same devices on the same data, which is then removed.
    for device in [phone, pad] { try await device.quit() }
    let second = try await World(dataFolder: folder, folder: first.folder)
    (phone, pad) = (try await second.device("phone"), try await second.device("pad"))
    try phone.save(change)
    try await second.settle(phone, pad)
    let before = try pad.snapshot()
    for device in [phone, pad] { try await device.quit() }
    await second.cloud.shutdown()
    let third = try await World(dataFolder: backup, folder: first.folder)
    try await third.cloud.service.beginNewIncarnation()
    try await body(third, before)
    await third.cloud.shutdown()
    // Its folder has the devices' stores.
    withExtendedLifetime(first) {}
  }

  @Test(
    "A device that was away longer than tombstones are kept applies deletions and reverts none"
  )
  func awayTooLong() async throws {
    let clock = MovedClock()
    var effects = Effects.live
    effects.clock = clock
    // Shorter than the lifetime of a session.
    let world = try await World(effects: effects, limits: { $0.traceLifetime = 3600 })
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try phone.save { context in
      for title in ["a", "b", "c"] { _ = context.make("Post", ["title": title]) }
    }
    try await world.settle(phone, pad)
    phone.faults.isOnline = false
    try pad.save { context in try context.delete(context.first("Post", "title", "a")) }
    try phone.save { context in try context.delete(context.first("Post", "title", "b")) }
    try await pad.sync()
    clock.move(seconds: 2 * 3600)
    try await world.cloud.service.collectTraces()
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    let journal = phone.container.storeMirrors[0].journal.latest
    #expect(journal.contains { $0.step == .rereading })
    #expect(try phone.titles() == ["c"])
    #expect(try pad.titles() == ["c"])
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("An edit of what a restored server lost is kept if a device sends the former value again")
  func editOfLostValue() async throws {
    try await withRestoredServer {
      _ = $0.make("Post", ["title": "a"])
    } change: {
      try $0.first("Post", "title", "a").setValue("lost", forKey: "title")
    } _: { world, _ in
      let late = try await ScriptedDevice("pad", in: world)
      late.cloud.onModify { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: 0) }
      await #expect(throws: (any Error).self) { try await late.mirror.syncNow() }
      #expect(try late.mirror.read { try $0.openBatch() } != nil)
      let phone = try await world.device("phone")
      try await phone.sync()
      try phone.save { try $0.first("Post", "title", "lost").setValue("edited", forKey: "title") }
      try await phone.sync()
      late.cloud.onModify(nil)
      // The first call may join a round that began before.
      try? await late.mirror.syncNow()
      for _ in 0..<3 {
        try await late.sync()
        try await phone.sync()
      }
      #expect(try phone.titles() == late.titles())
      let kept = try late.mirror.read { try $0.recoveredEdits() }
      #expect(
        try phone.titles() == ["edited"]
          || kept.contains { $0.fields["CD_title"] == .string("edited") }
      )
      try await late.quit()
      try await phone.quit()
    }
  }

  @Test("A server that was restored from a backup gets back the objects and edits that it lost")
  func restoredServer() async throws {
    try await withRestoredServer { context in
      let tag = context.make("Tag", ["name": "t"])
      context.make("Post", ["title": "a", "content": "kept"])
        .setValue(NSSet(object: tag), forKey: "tags")
    } change: { context in
      try context.first("Post", "title", "a").setValue("edited", forKey: "title")
      context.make("Post", ["title": "new"])
        .setValue(NSSet(array: try context.all("Tag")), forKey: "tags")
    } _: { world, before in
      let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
      try await world.settle(phone, pad)
      #expect(try phone.titles() == ["edited", "new"])
      #expect(try phone.snapshot() == before)
      #expect(try pad.snapshot() == before)
      let fresh = try await world.device("fresh")
      try await fresh.sync()
      #expect(try fresh.snapshot() == before)
      for device in [phone, pad, fresh] { try await device.quit() }
    }
  }

  @Test("Another account that signs in without an event is not treated as another server")
  func otherAccount() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    try await phone.sync()
    let before = try phone.mirror.read { try $0.zone(MirrorNames.zone) }
    phone.cloud.setAccount(.available(userRecordName: "another"))
    phone.cloud.onZoneChanges { _ in throw CloudFailure.tokenExpired(.otherServer) }
    await #expect(throws: (any Error).self) { try await phone.sync() }
    #expect(try phone.mirror.read { try $0.zone(MirrorNames.zone) } == before)
    #expect(try phone.mirror.read { try $0.pendingCount() } == 0)
    #expect(try phone.titles() == ["a"])
    try await phone.quit()
  }

  @Test("A device that was away while the server was replaced restores no deleted object")
  func deletionsOnAnotherServer() async throws {
    let world = try await World()
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try phone.save { context in
      for title in ["a", "b"] { _ = context.make("Post", ["title": title]) }
    }
    try await world.settle(phone, pad)
    phone.faults.isOnline = false
    try pad.save { context in try context.delete(context.first("Post", "title", "a")) }
    try await pad.sync()
    try await world.cloud.service.beginNewIncarnation()
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    #expect(try phone.titles() == ["b"])
    #expect(try pad.titles() == ["b"])
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("A device without data that a server lost continues from its token")
  func olderThanTheLoss() async throws {
    let world = try await World()
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try phone.save { context in
      for title in ["a", "b"] { _ = context.make("Post", ["title": title]) }
    }
    try await world.settle(phone, pad)
    phone.faults.isOnline = false
    try pad.save { context in
      try context.delete(context.first("Post", "title", "a"))
      try context.first("Post", "title", "b").setValue("edited", forKey: "title")
    }
    try await pad.sync()
    // A standby took over, without losing data.
    try world.cloud.service.storage.branchOff()
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    let journal = phone.container.storeMirrors[0].journal.latest
    #expect(!journal.contains { $0.step == .rereading })
    #expect(try phone.titles() == ["edited"])
    #expect(try pad.titles() == ["edited"])
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("An unexplained token loss deletes no object that is missing in the zone")
  func unexplainedLoss() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    try await phone.sync()
    phone.cloud.onZoneChanges { [cloud = phone.cloud] token in
      if token != nil { throw CloudFailure.tokenExpired(.unexplained) }
      cloud.onZoneChanges(nil)
      return CloudZoneChanges(records: [], token: Data("t".utf8))
    }
    try await phone.mirror.syncNow()
    #expect(try phone.titles() == ["a"])
    try await phone.quit()
  }

  @Test(
    "On a restored server the values that lose are kept, whichever copy its clock calls newer",
    arguments: [true, false]
  )
  func editOfRestoredRecord(isNewer: Bool) async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { _ = $0.make("Post", ["title": "agreed", "content": "c"]) }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    try phone.mirror.write(MirrorAuthor.importing) { session in
      try session.startRereading(.otherServer)
      let name = try #require(try session.metadata.record(entity: "Post", key: 1)).name
      // The backup's title, and another device's later edit of its content: saved last.
      try session.apply(
        records: [
          CloudRecord(
            name: name,
            recordType: "CD_Post",
            tag: "restored",
            stamps: RecordStamps(modified: isNewer ? .greatestFiniteMagnitude : 0),
            fields: FieldBag([
              "CD_entityName": .string("Post"), "CD_title": .string("older"),
              "CD_content": .string("edited"),
            ])
          )
        ],
        generation: try session.metadata.zone(MirrorNames.zone).generation
      )
      let record = try #require(try session.metadata.record(named: name))
      #expect(record.pending == (isNewer ? .nothing : .save))
      let kept = try #require(try session.metadata.recoveredEdits().first)
      #expect(kept.fields["CD_title"] == .string(isNewer ? "agreed" : "older"))
      #expect(kept.fields["CD_content"] == .string(isNewer ? "c" : "edited"))
    }
    #expect(try phone.titles() == [isNewer ? "older" : "agreed"])
    try await phone.quit()
  }

  @Test("A store that moves to another environment is exported there completely")
  func otherEnvironment() async throws {
    let world = try await World()
    let phone = try await world.device("phone")
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    try await phone.sync()
    try await phone.quit()
    try await world.cloud.service.schemas.promoteSchema(container: TestCloud.defaultContainer)
    let released = try await world.device("phone", environment: .production)
    try await released.sync()
    let pad = try await world.device("pad", environment: .production)
    try await pad.sync()
    #expect(try pad.titles() == ["a"])
    #expect(try released.titles() == ["a"])
    for device in [released, pad] { try await device.quit() }
  }
}
