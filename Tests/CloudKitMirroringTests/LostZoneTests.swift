import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCloudKit
import OpenCoreData
import Synchronization
import Testing

@Suite("Objects and links that are sent again after their zone was lost")
struct LostZoneTests {
  @Test("A zone that a batch did not find is read before anything is sent into the new one")
  func readsBeforeSending() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    try await phone.sync()
    let losses = Mutex(1)
    phone.cloud.onModify { _ in
      let isLost = losses.withLock { count in
        defer { count -= 1 }
        return count > 0
      }
      if isLost { throw CloudFailure.zoneMissing }
      return nil
    }
    try phone.save { _ = $0.make("Post", ["title": "b"]) }
    phone.cloud.forgetCalls()
    try await phone.sync()
    let calls = phone.cloud.calls
    let lost = try #require(calls.firstIndex(of: "saveZone"))
    let sent = try #require(calls[lost...].firstIndex { $0.hasPrefix("modify") })
    #expect(calls[lost..<sent].contains("zoneChanges"))
    try await phone.quit()
  }

  @Test("A link that waits for its object is not sent as removed")
  func waitingLink() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      pad.faults.isOnline = false
      try phone.save { context in
        let content = String(repeating: "long ", count: 160_000)
        let post = context.make("Post", ["title": "a", "content": content])
        context.make("Attachment", ["name": "file"]).setValue(post, forKey: "post")
      }
      try await phone.sync()
      // The post waits for its file.
      pad.faults.add(.fail(status: 500), to: "assets", count: .max)
      pad.faults.isOnline = true
      try await pad.sync()
      #expect(try pad.titles() == [])
      try await world.deleteZone()
      try await phone.sync()
      try await pad.sync()
      try await phone.sync()
      pad.faults.clear()
      try await world.settle(pad, phone)
      for device in [phone, pad] {
        let owners = try device.save { context in
          try context.all("Attachment").map { $0.value(forKey: "post") != nil }
        }
        #expect(owners == [true])
      }
      #expect(try phone.snapshot() == pad.snapshot())
    }
  }

  /// Runs a body that deletes a post and the link of another one by ``deletePostAndLink(_:)``, and expects
  /// both devices to agree on that.
  private func withDeletion(
    _ body: (_ world: World, _ phone: TestDevice, _ pad: TestDevice) async throws -> Void
  ) async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        let post = context.make("Post", ["title": "deleted"])
        let kept = context.make("Post", ["title": "kept"])
        let tag = context.make("Tag", ["name": "t"])
        for post in [post, kept] { post.setValue(NSSet(object: tag), forKey: "tags") }
      }
      try await world.settle(phone, pad)
      try await body(world, phone, pad)
      for device in [phone, pad] {
        #expect(try device.titles() == ["kept"])
        let tags = try device.save { context in
          (try context.first("Post", "title", "kept").value(forKey: "tags") as? NSSet)?.count
        }
        #expect(tags == 0)
      }
      #expect(try phone.snapshot() == pad.snapshot())
    }
  }

  private func deletePostAndLink(_ device: TestDevice) throws {
    try device.save { context in
      context.delete(try context.first("Post", "title", "deleted"))
      try context.first("Post", "title", "kept").setValue(NSSet(), forKey: "tags")
    }
  }

  @Test("An object that another device deleted since is not sent again by one that was away")
  func deletedSince() async throws {
    try await withDeletion { world, phone, pad in
      pad.faults.isOnline = false
      try await world.deleteZone()
      try await phone.sync()
      try deletePostAndLink(phone)
      try await phone.sync()
      pad.faults.isOnline = true
      try await world.settle(pad, phone)
    }
  }

  @Test(
    "The deletion of an object that is to be sent again is sent once another device has sent it"
  )
  func deletedBeforeSending() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    let known = try phone.mirror.write(MirrorAuthor.reset) { session in
      let known = try #require(try session.metadata.record(entity: "Post", key: 1))
      try session.forgetZone()
      return known
    }
    try phone.save { context in context.delete(try context.first("Post", "title", "a")) }
    try phone.mirror.write(MirrorAuthor.importing) { session in
      try session.foldHistory()
      let fields = try #require(known.base)
      let record = CloudRecord(name: known.name, recordType: "CD_Post", tag: "2", fields: fields)
      try session.apply(records: [record], generation: 0)
      #expect(try session.metadata.record(named: known.name)?.pending == .delete)
    }
    #expect(try phone.titles() == [])
    try await phone.quit()
  }

  @Test(
    "A deletion that was not sent before the zone was lost is sent if another device makes it again"
  )
  func deletedBeforeLoss() async throws {
    try await withDeletion { world, phone, pad in
      try await phone.relaunchOffline()
      try deletePostAndLink(phone)
      try await world.deleteZone()
      try await pad.sync()
      phone.faults.isOnline = true
      try await world.settle(phone, pad)
    }
  }

  @Test("A deletion older than its restoration does not delete a restored object")
  func restoredAfterDeletion() async throws {
    let world = try await World()
    let phone = try await world.device("phone")
    let mirror = try #require(phone.container.storeMirrors.first)
    try mirror.write(MirrorAuthor.setup) { session in
      try session.metadata.keepUnsent("N", entity: "Post", key: nil)
      let fields = FieldBag(["CD_entityName": .string("Post"), "CD_title": .string("a")])
      try session.metadata.keep(
        RecoveredEdit(record: "N", entityName: "Post", reason: "r", noted: 0, fields: fields)
      )
    }
    _ = try phone.container.restore(try #require(try phone.container.recoveryEntries().first))
    let isLeft = try mirror.write(MirrorAuthor.setup) { try $0.metadata.takeUnsent("N") }
    #expect(!isLeft)
    try await phone.quit()
  }

  @Test("A link that waits for its object outlives the loss of its zone")
  func waitingEdge() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { context in
      let tag = context.make("Tag", ["name": "t"])
      context.make("Post", ["title": "a"]).setValue(NSSet(object: tag), forKey: "tags")
    }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    try phone.mirror.write(MirrorAuthor.reset) { session in
      let post = try #require(try session.metadata.record(entity: "Post", key: 1))
      var edge = try #require(try session.metadata.edges(touching: post.name).first)
      edge.isLinked = false
      edge.tag = nil
      try session.metadata.update(edge)
      try session.forgetZone()
      let left = try #require(try session.metadata.edge(named: edge.name))
      #expect(left.pending == .nothing)
      try session.linkWhatWaited(for: post.name)
      #expect(try session.metadata.edge(named: edge.name)?.pending == .save)
    }
    try await phone.quit()
  }
}
