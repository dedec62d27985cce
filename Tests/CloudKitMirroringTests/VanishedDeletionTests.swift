import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("Deletions in a batch of which the server has nothing to delete")
struct VanishedDeletionTests {
  private func fill(_ context: NSManagedObjectContext) {
    let tag = context.make("Tag", ["name": "t"])
    for title in ["deleted", "kept"] {
      context.make("Post", ["title": title]).setValue(NSSet(object: tag), forKey: "tags")
    }
  }

  /// Deletes a post and the link of another one on a device that is set up and goes offline: they are in a batch,
  /// which is repeated before anything is read.
  private func deleteOffline(_ device: TestDevice) async throws {
    device.faults.add(.loseRequest, to: "records/modify", count: .max)
    try device.save { context in
      context.delete(try context.first("Post", "title", "deleted"))
      try context.first("Post", "title", "kept").setValue(NSSet(), forKey: "tags")
    }
    await #expect(throws: (any Error).self) { try await device.sync() }
    device.faults.isOnline = false
    device.faults.clear()
    let mirror = try #require(device.container.storeMirrors.first)
    #expect(try mirror.read { try $0.openBatch() } != nil)
  }

  private func expectDeleted(_ devices: TestDevice...) throws {
    for device in devices {
      #expect(try device.titles() == ["kept"], "\(device.name)")
      let tags = try device.save { context in
        (try context.first("Post", "title", "kept").value(forKey: "tags") as? NSSet)?.count
      }
      #expect(tags == 0, "\(device.name)")
    }
    #expect(try Set(devices.map { try $0.snapshot() }).count == 1)
  }

  @Test("A zone that a third device made again without them brings them back on no device")
  func remadeZone() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save(fill)
      try await world.settle(phone, pad)
      try await deleteOffline(phone)
      // It would make the zone again itself.
      pad.faults.isOnline = false
      try await world.deleteZone()
      let tablet = try await world.device("tablet")
      try await tablet.sync()
      phone.faults.isOnline = true
      try await phone.sync()
      pad.faults.isOnline = true
      try await world.settle(pad, phone, tablet)
      try expectDeleted(phone, pad, tablet)
      try await tablet.quit()
    }
  }

  @Test("A link that another device makes again after the zone was is in the recovery list")
  func madeAgain() async throws {
    try await World.with("phone") { world, devices in
      let phone = devices[0]
      try phone.save(fill)
      try await world.settle(phone)
      try await deleteOffline(phone)
      try await world.deleteZone()
      let tablet = try await world.device("tablet")
      try await tablet.sync()
      phone.faults.isOnline = true
      try await world.settle(phone, tablet)
      try expectDeleted(phone, tablet)
      try tablet.save { context in
        let tag = try context.first("Tag", "name", "t")
        try context.first("Post", "title", "kept").setValue(NSSet(object: tag), forKey: "tags")
      }
      try await world.settle(tablet, phone)
      let entries = try phone.container.recoveryEntries()
      #expect(entries.map(\.propertyNames) == [["tags"]])
      for entry in entries { try phone.container.restore(entry) }
      try await world.settle(phone, tablet)
      for device in [phone, tablet] {
        let tags = try device.save { context in
          (try context.first("Post", "title", "kept").value(forKey: "tags") as? NSSet)?.count
        }
        #expect(tags == 1, "\(device.name)")
      }
      try await tablet.quit()
    }
  }

  @Test("A server that was restored from a backup without them brings them back on no device")
  func restoredServer() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("vanished-" + UUID().uuidString)
    let backup = folder.appendingPathExtension("backup")
    defer {
      for url in [folder, backup] { try? FileManager.default.removeItem(at: url) }
    }
    let first = try await World(dataFolder: folder)
    var devices = [try await first.device("phone"), try await first.device("pad")]
    try devices[0].save { _ = $0.make("Tag", ["name": "of the backup"]) }
    try await first.settle(devices[0], devices[1])
    await first.cloud.shutdown()
    try FileManager.default.copyItem(at: folder, to: backup)
    for device in devices { try await device.quit() }
    let second = try await World(dataFolder: folder, folder: first.folder)
    devices = [try await second.device("phone"), try await second.device("pad")]
    try devices[0].save(fill)
    try await second.settle(devices[0], devices[1])
    try await deleteOffline(devices[0])
    for device in devices { try await device.quit() }
    await second.cloud.shutdown()
    let third = try await World(dataFolder: backup, folder: first.folder)
    try await third.cloud.service.beginNewIncarnation()
    let phone = try await third.device("phone")
    try await phone.sync()
    let pad = try await third.device("pad")
    try await third.settle(pad, phone)
    try expectDeleted(phone, pad)
    for device in [phone, pad] { try await device.quit() }
    await third.cloud.shutdown()
    // Its folder has the devices' stores.
    withExtendedLifetime(first) {}
  }

  @Test("What two devices delete at once can be made again later")
  func deletedOnBoth() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save(fill)
      try await world.settle(phone, pad)
      try await deleteOffline(phone)
      try pad.save { context in
        context.delete(try context.first("Post", "title", "deleted"))
        try context.first("Post", "title", "kept").setValue(NSSet(), forKey: "tags")
      }
      try await pad.sync()
      phone.faults.isOnline = true
      try await world.settle(phone, pad)
      try expectDeleted(phone, pad)
      // The link has the name that it had.
      try pad.save { context in
        let tag = try context.first("Tag", "name", "t")
        try context.first("Post", "title", "kept").setValue(NSSet(object: tag), forKey: "tags")
      }
      try await world.settle(pad, phone)
      for device in [phone, pad] {
        let tags = try device.save { context in
          (try context.first("Post", "title", "kept").value(forKey: "tags") as? NSSet)?.count
        }
        #expect(tags == 1)
      }
    }
  }
}
