import CloudKitMirroring
import CloudKitTesting
import Effects
import Foundation
import OpenCoreData
import Synchronization
import Testing

@Suite("Two processes that mirror one file")
struct TwoProcessTests {
  private func lastTransaction(_ device: ScriptedDevice) throws -> Int64 {
    try device.mirror.write(MirrorAuthor.setup) { try $0.rows.lastTransactionNumber() }
  }

  @Test("A page that was fetched before another process applied a newer one is left out")
  func olderPage() async throws {
    let world = try await World()
    let phone = try await world.device("phone")
    try phone.save { _ = $0.make("Post", ["title": "first"]) }
    try await phone.sync()
    // Two mirrors of one file, as an app and its extension have them.
    let app = try await ScriptedDevice("pad", in: world)
    try await app.sync()
    let other = try await ScriptedDevice("pad", in: world)
    try await other.sync()
    try phone.save { try $0.first("Post", "title", "first").setValue("second", forKey: "title") }
    try await phone.sync()

    let (fetched, didFetch) = AsyncStream<Void>.makeStream()
    let (released, release) = AsyncStream<Void>.makeStream()
    app.cloud.onZonePage { page in
      guard page.records.contains(where: { $0.fields["CD_title"] == .string("second") }) else {
        return
      }
      didFetch.yield()
      for await _ in released { break }
    }
    async let synced: Void = app.sync()
    for await _ in fetched { break }
    try phone.save { try $0.first("Post", "title", "second").setValue("third", forKey: "title") }
    try await phone.sync()
    try await other.sync()
    #expect(try other.titles() == ["third"])
    let token = try other.mirror.read { try $0.zone(MirrorNames.zone).token }
    let transaction = try lastTransaction(other)
    app.cloud.onZonePage(nil)
    release.yield()
    try await synced
    #expect(try app.titles() == ["third"])
    #expect(try app.mirror.read { try $0.zone(MirrorNames.zone).token } == token)
    // Nothing was written, so no context showed the former value for a while.
    #expect(try lastTransaction(app) == transaction)
    try await app.quit()
    try await other.quit()
    try await phone.quit()
  }

  @Test("A page that a process applies is taken by another one only after it has stopped")
  func begunPage() async throws {
    let world = try await World()
    let clock = ManualClock()
    var effects = Effects.live
    effects.clock = clock
    let app = try await ScriptedDevice("pad", in: world, effects: effects, isStarted: false)
    let other = try await ScriptedDevice("pad", in: world, effects: effects, isStarted: false)
    let zone = try app.mirror.read { try $0.zone(MirrorNames.zone) }
    func claim(_ device: ScriptedDevice, isFirst: Bool) throws {
      try device.mirror.write(MirrorAuthor.importing) { session in
        try session.claimPage(after: zone, isFirst: isFirst)
      }
    }
    try claim(app, isFirst: true)
    for _ in 0..<3 {
      clock.advance(seconds: 4)
      #expect(throws: ClaimedPage.self) { try claim(other, isFirst: true) }
      try claim(app, isFirst: false)
    }
    // It has ended, or takes too long.
    clock.advance(seconds: 6)
    try claim(other, isFirst: true)
    #expect(throws: OutdatedPage.self) { try claim(app, isFirst: false) }
    #expect(throws: ClaimedPage.self) { try claim(app, isFirst: true) }
    try claim(other, isFirst: false)
    try other.mirror.write(MirrorAuthor.importing) { session in
      var later = zone
      later.token = Data([1])
      try session.metadata.save(later)
    }
    #expect(throws: OutdatedPage.self) { try claim(app, isFirst: true) }
    try await app.quit()
    try await other.quit()
  }

  @Test("A batch that another process opens during an import is not taken for the settled one")
  func otherOpenBatch() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    try await phone.sync()
    let numbers = Mutex<[Int64]>([])
    phone.cloud.onModify { batch in
      numbers.withLock { $0.append(batch.sequence) }
      throw CloudFailure.alreadySettled(reason: "Another process has settled it.")
    }
    // The other process settles the batch and opens the next one while this one imports.
    phone.cloud.onZonePage { [cloud = phone.cloud, mirror = phone.mirror] _ in
      guard !numbers.withLock({ $0.isEmpty }) else { return }
      cloud.onZonePage(nil)
      cloud.onModify { batch in
        numbers.withLock { $0.append(batch.sequence) }
        return nil
      }
      do {
        try mirror.write(MirrorAuthor.exporting) { session in
          let settled = try #require(try session.metadata.openBatch())
          try session.replaceSettled(CloudBatch(encoded: settled.payload))
          _ = try #require(try session.assembleBatch(limits: .init()))
        }
      } catch {
        Issue.record(error)
      }
    }
    try phone.save { try $0.first("Post", "title", "a").setValue("b", forKey: "title") }
    // The first rounds fail.
    for _ in 0..<3 { _ = try? await phone.mirror.syncNow() }
    try await phone.sync()
    let sent = numbers.withLock { $0 }
    // The batch of the other process is repeated, and not made again.
    #expect(sent.last == sent[0] + 1)
    try await phone.quit()
  }

  @Test("The end of look-ups applies no deletion of a feed that another process has read in part")
  func lookUpsDuringFeed() async throws {
    let world = try await World()
    let phone = try await world.device("phone")
    try phone.save { context in
      let post = context.make("Post", ["title": "former"])
      context.make("Attachment", ["name": "a"]).setValue(post, forKey: "post")
      _ = context.make("Post", ["title": "new"])
    }
    try await phone.sync()
    let app = try await ScriptedDevice("pad", in: world)
    try await app.sync()
    let other = try await ScriptedDevice("pad", in: world, pageLimit: 1)
    try await other.sync()
    let name = try #require(try app.mirror.read { try $0.record(entity: "Post", key: 1)?.name })
    let (asked, didAsk) = AsyncStream<Void>.makeStream()
    let (released, release) = AsyncStream<Void>.makeStream()
    app.cloud.onLookup { _ in
      didAsk.yield()
      for await _ in released { break }
      return nil
    }
    try app.mirror.write(MirrorAuthor.importing) { session in
      try session.metadata.keepUnreadable(name, reason: "A file was missing.")
    }
    async let synced: Void = app.mirror.syncNow()
    for await _ in asked { break }
    other.cloud.onZoneChanges { _ in throw CloudFailure.busy(reason: "Not yet.", retryAfter: nil) }
    // The member moves, and its record follows the deletion of the former owner in the feed.
    try phone.save { context in
      let attachment = try context.first("Attachment", "name", "a")
      attachment.setValue(try context.first("Post", "title", "new"), forKey: "post")
      context.processPendingChanges()
      context.delete(try context.first("Post", "title", "former"))
    }
    try await phone.sync()
    try phone.save { try $0.first("Attachment", "name", "a").setValue("b", forKey: "name") }
    try await phone.sync()
    other.cloud.onZonePage { [cloud = other.cloud] page in
      guard !page.deletedNames.isEmpty else { return }
      cloud.onZonePage(nil)
      cloud.onZoneChanges { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: nil) }
    }
    other.cloud.onZoneChanges(nil)
    await #expect(throws: (any Error).self) { try await other.sync() }
    #expect(try other.mirror.read { try $0.goneRecords(limit: 10) }.count == 1)
    app.cloud.onLookup(nil)
    release.yield()
    // The deletion waits for the end of the feed, which this process may read as well.
    _ = try? await synced
    other.cloud.onZoneChanges(nil)
    try await other.sync()
    let snapshot = try phone.snapshot()
    #expect(snapshot.count == 2)
    #expect(try other.mirror.snapshot() == snapshot)
    try await app.quit()
    try await other.quit()
    try await phone.quit()
  }
}
