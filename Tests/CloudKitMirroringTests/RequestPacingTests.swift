import CloudKitMirroring
import CloudKitTesting
import Effects
import Foundation
import OpenCoreData
import Synchronization
import Testing

@Suite("When a mirror makes requests")
struct RequestPacingTests {
  @Test("Refused changes are sent again automatically after a pause")
  func retriedByItself() async throws {
    let clock = ManualClock()
    var effects = Effects.live
    effects.clock = clock
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world, effects: effects)
    phone.cloud.onModify { batch in
      batch.operations.map { _ in .refused(reason: "No such field in production.") }
    }
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    try await phone.sync()
    #expect(try phone.mirror.status().parked.count == 1)
    let sent = SentBatches()
    phone.cloud.onModify { batch in
      sent.add(batch.operations.count)
      return nil
    }
    // The mirror may not wait yet.
    while sent.counts.isEmpty {
      clock.advance(seconds: 3601)
      await Task.yield()
    }
    #expect(sent.counts.first == 1)
    try await phone.sync()
    #expect(try phone.mirror.status().parked.isEmpty)
    try await phone.quit()
  }

  @Test(
    "A batch that something on the way always breaks is split without a push or a call of the app"
  )
  func splitByItself() async throws {
    let clock = ManualClock()
    var effects = Effects.live
    effects.clock = clock
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world, effects: effects)
    try await phone.sync()
    phone.cloud.onModify { batch in
      guard batch.operations.contains(where: { $0.set["CD_title"] == .string("b") }) else {
        return nil
      }
      throw CloudFailure.busy(reason: "A page of a filter.", retryAfter: nil)
    }
    try phone.save { context in
      for title in ["a", "b", "c"] { _ = context.make("Post", ["title": title]) }
    }
    // The mirror may not wait yet.
    while !phone.mirror.journal.latest.contains(where: { $0.step == .recordParked }) {
      clock.advance(seconds: 3601)
      try await Task.sleep(for: .milliseconds(2))
    }
    let pad = try await world.device("pad")
    try await pad.sync()
    #expect(try pad.snapshot().count == 2)
    try await pad.quit()
    phone.acceptAll()
    try await phone.quit()
  }

  @Test("A retry time of the server is respected, up to an hour, regardless of other wake-ups")
  func retryAfter() async throws {
    try await ScriptedDevice.with { _, phone in
      phone.cloud.onModify { _ in throw CloudFailure.busy(reason: "Later.", retryAfter: 1e12) }
      try phone.save { _ = $0.make("Post", ["title": "a"]) }
      await #expect(throws: CloudFailure.self) { try await phone.mirror.syncNow() }
      let until = try #require(try phone.mirror.status().pausedUntil)
      #expect(until.timeIntervalSinceNow <= RetryBackoff.longestRetryAfter)
      phone.cloud.forgetCalls()
      phone.mirror.wake(import: true, export: true, urgent: true, cause: "A push came.")
      await #expect(throws: CloudFailure.self) { try await phone.mirror.syncNow() }
      #expect(phone.cloud.calls.isEmpty)
    }
  }

  @Test(
    "An invalid retry time is no wait, and none is longer than an hour",
    arguments: [(-1.0, 0.0), (.nan, 0), (.infinity, 3600), (1e300, 3600), (7, 7)]
  )
  func boundedRetryAfter(sent: Double, kept: Double) {
    #expect(RetryBackoff.bounded(sent) == kept)
  }

  @Test("An account that may have changed ends a run before its next request")
  func accountChange() async throws {
    try await ScriptedDevice.with { _, phone in
      let isFirst = Mutex(true)
      phone.cloud.onModify { [weak mirror = phone.mirror] _ in
        if isFirst.withLock({ first in
          defer { first = false }
          return first
        }) {
          mirror?.accountMayHaveChanged()
        }
        return nil
      }
      try phone.save { context in
        for number in 0..<300 { _ = context.make("Post", ["title": "\(number)"]) }
      }
      phone.cloud.forgetCalls()
      _ = try? await phone.sync()
      try await phone.sync()
      let calls = phone.cloud.calls.drop { !$0.hasPrefix("modify") }.dropFirst()
      #expect(calls.first { $0 == "account" || $0.hasPrefix("modify") } == "account")
    }
  }

  @Test("If notifications end immediately, the feed is polled in its interval and not in a loop")
  func endedNotifications() async throws {
    try await ScriptedDevice.with { world, phone in
      let pad = try await world.device("pad")
      phone.cloud.forgetCalls()
      for number in 0..<5 {
        try pad.save { _ = $0.make("Post", ["title": "\(number)"]) }
        try await pad.sync()
      }
      #expect(phone.cloud.calls.filter { $0 == "databaseChanges" }.count <= 1)
      try await pad.quit()
    }
  }

  @Test("Two mirrors of one file become idle")
  func twoProcesses() async throws {
    let world = try await World()
    let first = try await ScriptedDevice("phone", in: world)
    let second = try await ScriptedDevice("phone", in: world)
    try first.save { _ = $0.make("Post", ["title": "a"]) }
    try await first.sync()
    try await second.sync()
    let pad = try await world.device("pad")
    let before = try first.events.count
    for number in 0..<5 {
      try pad.save { _ = $0.make("Post", ["title": "\(number)"]) }
      try await pad.sync()
    }
    #expect(try first.events.count - before < 10)
    for device in [first, second] { try await device.quit() }
    try await pad.quit()
  }
}

/// The sizes of batches that a cloud has got.
private final class SentBatches: Sendable {
  private let state = Mutex<[Int]>([])

  var counts: [Int] { state.withLock { $0 } }

  func add(_ count: Int) { state.withLock { $0.append(count) } }
}
