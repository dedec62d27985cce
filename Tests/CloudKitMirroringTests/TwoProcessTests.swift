import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
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

  @Test("A process that began a page before another one did applies no more of it")
  func begunPage() async throws {
    let world = try await World()
    let app = try await ScriptedDevice("pad", in: world)
    try await app.sync()
    let other = try await ScriptedDevice("pad", in: world)
    for device in [app, other] { await device.mirror.stopAndFinish() }
    let zone = try app.mirror.read { try $0.zone(MirrorNames.zone) }
    func claim(_ device: ScriptedDevice, isFirst: Bool) throws {
      try device.mirror.write(MirrorAuthor.importing) { session in
        try session.claimPage(after: zone, isFirst: isFirst)
      }
    }
    try claim(app, isFirst: true)
    try claim(app, isFirst: false)
    try claim(other, isFirst: true)
    #expect(throws: OutdatedPage.self) { try claim(app, isFirst: false) }
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
}
