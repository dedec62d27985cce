import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Synchronization
import Testing

@Suite("Two mirrors of one file, and of files beside each other")
struct TwoMirrorsTests {
  private func lastTransaction(_ device: ScriptedDevice) throws -> Int64 {
    try device.mirror.write(MirrorAuthor.setup) { try $0.rows.lastTransactionNumber() }
  }

  @Test("A page that was read before the other mirror applied a later one is dropped")
  func latePage() async throws {
    let world = try await World()
    let pad = try await world.device("pad")
    try pad.save { _ = $0.make("Post", ["title": "v0"]) }
    try await pad.sync()
    let first = try await ScriptedDevice("phone", in: world)
    try await first.sync()
    let second = try await ScriptedDevice("phone 2", in: world, file: "phone.sqlite")
    try await second.sync()
    try await first.sync()
    try pad.save { try $0.first("Post", "title", "v0").setValue("v1", forKey: "title") }
    try await pad.sync()
    let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self)
    let (releases, release) = AsyncStream.makeStream(of: Void.self)
    let keys = first.mirror.context.mapping.desiredKeys
    first.cloud.onZoneChanges { [cloud = first.cloud] token in
      cloud.onZoneChanges(nil)
      let page = try await cloud.zoneChanges(
        MirrorNames.zone,
        after: token,
        limit: 200,
        keys: keys,
        includesDeleted: false
      )
      arrived.yield()
      for await _ in releases { break }
      return page
    }
    async let round: Void = first.mirror.syncNow()
    for await _ in arrivals { break }
    try pad.save { try $0.first("Post", "title", "v1").setValue("v2", forKey: "title") }
    try await pad.sync()
    try await second.sync()
    #expect(try second.titles() == ["v2"])
    let token = try second.mirror.read { try $0.zone(MirrorNames.zone).token }
    let transaction = try lastTransaction(second)
    release.yield()
    try await round
    #expect(try first.titles() == ["v2"])
    #expect(try first.mirror.read { try $0.zone(MirrorNames.zone).token } == token)
    // Nothing was written, so no context showed the former value for a while.
    #expect(try lastTransaction(first) == transaction)
    try await first.quit()
    try await second.quit()
    try await pad.quit()
  }

  @Test("A store that is opened leaves the files of a store whose name has another extension")
  func extensions() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world, file: "A.sqlite")
    try await phone.sync()
    phone.cloud.onModify { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: 0) }
    try phone.save { _ = $0.make("ImageData", ["data": Data(count: 1_000_000)]) }
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    let open = try #require(try phone.mirror.read { try $0.openBatch() })
    let files = try CloudBatch(encoded: open.payload).files.map(phone.mirror.context.assets.path)
    #expect(files.count == 1)
    let other = try await ScriptedDevice("pad", in: world, file: "A.db")
    for file in files { #expect(FileManager.default.fileExists(atPath: file)) }
    phone.cloud.onModify(nil)
    // A round that began before ends with the former refusal.
    _ = try? await phone.mirror.syncNow()
    try await phone.sync()
    try await other.sync()
    #expect(try phone.mirror.snapshot() == other.mirror.snapshot())
    try await other.quit()
    try await phone.quit()
  }

  @Test("A store that is opened removes the files that an earlier launch of it left")
  func leftFiles() async throws {
    let world = try await World()
    var phone = try await ScriptedDevice("phone", in: world)
    let assets = phone.mirror.context.assets
    let left = assets.path(try assets.write(Data(count: 10)))
    try await phone.sync()
    try await phone.quit()
    phone = try await ScriptedDevice("phone", in: world)
    #expect(!FileManager.default.fileExists(atPath: left))
    try await phone.quit()
  }
}
