import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCloudKit
import OpenCoreData
import Testing

@Suite("Lost files and restored stores")
struct LostFileTests {
  private static let large = String(repeating: "long ", count: 160_000)

  @Test(
    "A file that the server lost delays only its record, which is imported once the file is back"
  )
  func missingFile() async throws {
    let data = FileManager.default.temporaryDirectory
      .appendingPathComponent("lost-" + UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: data) }
    let world = try await World(dataFolder: data)
    let phone = try await world.device("phone")
    try phone.save { context in
      _ = context.make("Post", ["title": "large", "content": Self.large])
      _ = context.make("Post", ["title": "small"])
    }
    try await phone.sync()
    let files = try #require(
      FileManager.default.enumerator(at: data, includingPropertiesForKeys: nil)
    )
    .compactMap { $0 as? URL }
    .filter { url in
      let attributes = try? FileManager.default.attributesOfItem(atPath: url.path)
      return url.path.contains("asset") && (attributes?[.size] as? Int ?? 0) >= 700_000
    }
    let file = try #require(files.first)
    let aside = file.appendingPathExtension("aside")
    try FileManager.default.moveItem(at: file, to: aside)
    let pad = try await world.device("pad")
    try await pad.sync()
    #expect(try pad.titles() == ["small"])
    try pad.save { _ = $0.make("Post", ["title": "pad"]) }
    try await world.settle(pad, phone)
    #expect(try phone.titles() == ["large", "pad", "small"])
    try FileManager.default.moveItem(at: aside, to: file)
    try await pad.sync()
    #expect(try pad.snapshot() == phone.snapshot())
    for device in [phone, pad] { try await device.quit() }
    await world.cloud.shutdown()
  }

  @Test(
    "A file that the service cannot return delays only its record, as long as that lasts"
  )
  func failingFile() async throws {
    let world = try await World()
    let phone = try await world.device("phone")
    try phone.save { context in
      _ = context.make("Post", ["title": "large", "content": Self.large])
      _ = context.make("Post", ["title": "small"])
    }
    try await phone.sync()
    let pad = try await world.device("pad")
    pad.faults.add(.fail(status: 500), to: "assets", count: .max)
    try await pad.sync()
    #expect(try pad.titles() == ["small"])
    pad.faults.clear()
    try await pad.sync()
    #expect(try pad.snapshot() == phone.snapshot())
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("A one-to-one partner whose file is downloaded late is linked on both sides")
  func lateOneToOne() async throws {
    let world = try await World()
    let phone = try await world.device("phone")
    let pad = try await world.device("pad")
    try phone.save { _ = $0.make("Attachment", ["name": "a"]) }
    try await world.settle(phone, pad)
    try phone.save { context in
      let image = context.make("ImageData", ["data": Data(count: 900_000)])
      try context.first("Attachment", "name", "a").setValue(image, forKey: "imageData")
    }
    try await phone.sync()
    pad.faults.add(.fail(status: 500), to: "assets", count: .max)
    try await pad.sync()
    #expect(try pad.snapshot().count == 1)
    pad.faults.clear()
    try await pad.sync()
    #expect(try pad.snapshot() == phone.snapshot())
    let isLinked = try pad.save { context in
      try context.first("Attachment", "name", "a").value(forKey: "imageData") != nil
    }
    #expect(isLinked)
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("A download that fails in a conflict erases no value")
  func failedDownload() async throws {
    let world = try await World()
    let (phone, pad) = (try await ScriptedDevice("phone", in: world), try await world.device("pad"))
    try phone.save { _ = $0.make("Post", ["title": "t", "content": Self.large]) }
    try await phone.sync()
    try await pad.sync()
    phone.cloud.onModify { [cloud = phone.cloud, faults = phone.faults] _ in
      // The other edit is made between this device's import and its export.
      cloud.onModify(nil)
      try pad.save { try $0.all("Post").first?.setValue("other", forKey: "title") }
      try await pad.sync()
      faults.add(.fail(status: 503), to: "assets", count: 2)
      return nil
    }
    try phone.save { try $0.all("Post").first?.setValue(1, forKey: "views") }
    for _ in 0..<4 { _ = try? await phone.sync() }
    try await phone.sync()
    try await pad.sync()
    try phone.save { context in
      let post = try #require(try context.all("Post").first)
      #expect(post.value(forKey: "content") as? String == Self.large)
      #expect(post.value(forKey: "title") as? String == "other")
    }
    #expect(try phone.mirror.snapshot() == pad.snapshot())
    try await phone.quit()
    try await pad.quit()
  }

  @Test("A setup after a change of the account keeps the files of records that the app uses")
  func filesOfRecords() async throws {
    try await World.with("phone") { _, devices in
      let phone = devices[0]
      let id = try phone.save { context in
        let post = context.make("Post", ["title": "t", "content": Self.large])
        try context.save()
        return post.objectID
      }
      try await phone.sync()
      let record = try #require(phone.container.record(for: id))
      let asset = try #require(record["CD_content_ckAsset"] as? CKAsset)
      let file = try #require(asset.fileURL)
      #expect(FileManager.default.fileExists(atPath: file.path))
      let again = try #require(phone.container.record(for: id))
      #expect((again["CD_content_ckAsset"] as? CKAsset)?.fileURL == file)
      phone.container.storeMirrors[0].accountMayHaveChanged()
      try await phone.sync()
      #expect(FileManager.default.fileExists(atPath: file.path))
    }
  }

  @Test(
    "An edit in a restored copy of a store is sent, although its batch's number was used"
  )
  func restoredStore() async throws {
    let world = try await World()
    var phone = try await world.device("phone")
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    try await phone.sync()
    try await phone.quit()
    let copy = world.folder.appendingPathComponent("copy.sqlite")
    try FileManager.default.copyItem(at: phone.storeURL, to: copy)
    phone = try await world.device("phone")
    try phone.save { try $0.all("Post").first?.setValue("first", forKey: "title") }
    try await phone.sync()
    try await phone.quit()
    for suffix in ["", "-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: phone.storeURL.path + suffix)
    }
    try FileManager.default.copyItem(at: copy, to: phone.storeURL)
    phone = try await world.device("phone")
    phone.faults.isOnline = false
    try phone.save { try $0.all("Post").first?.setValue("second", forKey: "title") }
    phone.faults.isOnline = true
    try await phone.sync()
    let pad = try await world.device("pad")
    try await pad.sync()
    #expect(try pad.titles() == ["second"])
    #expect(try phone.snapshot() == pad.snapshot())
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("History that another coordinator deletes while the mirror runs loses no edit")
  func deletedHistory() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "a"]) }
      try await world.settle(phone, pad)
      phone.faults.isOnline = false
      // A mirror that is offline does not fold history.
      try phone.editElsewhere(world.model) { context in
        try context.first("Post", "title", "a").setValue("edited", forKey: "title")
        try context.save()
        try context.execute(
          NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
        )
      }
      phone.faults.isOnline = true
      try pad.save { try $0.all("Post").first?.setValue("pad", forKey: "content") }
      try await world.settle(pad, phone, pad)
      #expect(try pad.titles() == ["edited"])
      #expect(try phone.snapshot() == pad.snapshot())
    }
  }

  @Test("Saves whose history another process deletes by its author reach all devices")
  func deletedHistoryOfAuthor() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        for title in ["kept", "edited", "deleted"] { _ = context.make("Post", ["title": title]) }
      }
      try await world.settle(phone, pad)
      try await phone.quit()
      try phone.editElsewhere(world.model) { context in
        context.transactionAuthor = "widget"
        try context.first("Post", "title", "edited").setValue("changed", forKey: "title")
        try context.delete(context.first("Post", "title", "deleted"))
        _ = context.make("Post", ["title": "made"])
        try context.save()
        let deletion = NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
        deletion.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
        deletion.fetchRequest?.predicate = NSPredicate(format: "author == 'widget'")
        deletion.resultType = .count
        let result = try context.execute(deletion) as? NSPersistentHistoryResult
        #expect(result?.result as? Int == 1)
        let left = NSPersistentHistoryChangeRequest.fetchHistory(after: Date.distantPast)
        left.resultType = .count
        let older = try context.execute(left) as? NSPersistentHistoryResult
        #expect(older?.result as? Int != 0)
      }
      try phone.launch()
      try await world.settle(phone, pad, phone)
      for device in [phone, pad] { #expect(try device.titles() == ["changed", "kept", "made"]) }
    }
  }
}
