import CloudKitMirroring
import CloudKitTesting
import Effects
import Foundation
import OpenCoreData
import Testing

@Suite("Set-ups of which the server refuses a part")
struct RefusedSetUpTests {
  /// A world with a post of another device.
  private func world() async throws -> World {
    let world = try await World()
    let phone = try await world.device("phone")
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    try await phone.sync()
    try await phone.quit()
    return world
  }

  @Test("A new device reads the zone of a full database")
  func fullDatabase() async throws {
    let world = try await world()
    let pad = try await ScriptedDevice("pad", in: world, refusing: "saveZone", with: .full)
    try await pad.sync()
    #expect(try pad.titles() == ["a"])
    // It deletes something, which makes room.
    try pad.save { context in context.delete(try context.first("Post", "title", "a")) }
    try await pad.sync()
    #expect(try pad.mirror.status().pendingCount == 0)
    try await pad.quit()
  }

  @Test("A zone that a full database does not take is created when there is room")
  func fullDatabaseWithoutZone() async throws {
    let world = try await World()
    let pad = try await ScriptedDevice(
      "pad",
      in: world,
      refusing: "saveZone",
      with: .full
    )
    try pad.save { _ = $0.make("Post", ["title": "a"]) }
    let failure = await #expect(throws: CloudFailure.self) { try await pad.mirror.syncNow() }
    #expect(failure == .full)
    pad.cloud.refuse("saveZone", with: nil)
    try await pad.sync()
    #expect(try pad.mirror.status().pendingCount == 0)
    try await pad.quit()
  }

  @Test(
    "Without a subscription the feed is polled, and the subscription is saved later",
    arguments: [
      CloudFailure.refused(reason: "There are too many."), .tooLarge, .full,
      .unreachable(reason: "The reply is a page."),
      .busy(reason: "The service failed.", retryAfter: nil),
    ]
  )
  func withoutSubscription(failure: CloudFailure) async throws {
    let world = try await world()
    let clock = ManualClock()
    let pad = try await ScriptedDevice(
      "pad",
      in: world,
      effects: Effects(
        clock: clock,
        randomness: SeededRandomness(seed: 1),
        tasks: PoolTaskSpawner()
      ),
      pollInterval: 30,
      refusing: "saveSubscription",
      with: failure
    )
    _ = pad.cloud.keepListening()
    try await pad.sync()
    #expect(try pad.titles() == ["a"])
    #expect(pad.cloud.calls.contains("notifications"))
    pad.cloud.forgetCalls()
    pad.cloud.refuse("saveSubscription", with: nil)
    // The channel is open and announces nothing.
    while !pad.cloud.calls.contains("saveSubscription") {
      clock.advance(seconds: 30)
      await Task.yield()
    }
    try await pad.quit()
  }
}

extension CloudFailure {
  fileprivate static let full = CloudFailure.overQuota(reason: "The database is full.")
}
