import CloudKitMirroring
import CloudKitServer
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("A reset of the development environment") struct DevelopmentResetTests {
  private func reset(_ world: World) async throws {
    try await world.cloud.service.schemas.resetDevelopment(container: TestCloud.defaultContainer)
  }

  @Test("Running apps continue after a reset: no object is lost, and saves are exchanged")
  func goingOn() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "before"]) }
      try await world.settle(phone, pad)
      try await reset(world)
      try phone.save { _ = $0.make("Post", ["title": "phone after"]) }
      try pad.save { _ = $0.make("Post", ["title": "pad after"]) }
      try await world.settle(phone, pad)
      let all = ["before", "pad after", "phone after"]
      #expect(try phone.titles() == all)
      #expect(try pad.titles() == all)
      #expect(try phone.snapshot() == pad.snapshot())
    }
  }

  @Test("A save after the reset is pushed to another app as before")
  func byThemselves() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "before"]) }
      try await world.settle(phone, pad)
      let mirror = try #require(pad.container.storeMirrors.first)
      let events = mirror.journal.events()
      try await reset(world)
      try phone.save { _ = $0.make("Post", ["title": "after"]) }
      for await event in events where event.step == .pageApplied && event.inserted == 1 { break }
      #expect(try pad.titles() == ["after", "before"])
    }
  }

  @Test("An app that only reads notices the reset by itself, and its data is exported again")
  func notifying() async throws {
    try await World.with("phone") { world, devices in
      let phone = devices[0]
      try phone.save { _ = $0.make("Post", ["title": "before"]) }
      try await world.settle(phone)
      let mirror = try #require(phone.container.storeMirrors.first)
      let events = mirror.journal.events()
      try await reset(world)
      for await event in events where event.step == .zoneLost { break }
      try await world.settle(phone)
      let pad = try await world.device("pad")
      try await world.settle(pad)
      #expect(try pad.titles() == ["before"])
      try await pad.quit()
    }
  }
}
