import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCloudKit
import OpenCoreData
import Synchronization
import Testing

@Suite("Records and requests that the server refuses")
struct RefusalTests {
  @Test("A batch that the server refuses now does not delay an import")
  func stuckBatch() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try await world.settle(phone, pad)
      phone.faults.add(.fail(status: 500), to: "records/modify", count: .max)
      try phone.save { _ = $0.make("Post", ["title": "phone"]) }
      await #expect(throws: (any Error).self) { try await phone.sync() }
      try pad.save { _ = $0.make("Post", ["title": "pad"]) }
      try await pad.sync()
      await #expect(throws: (any Error).self) { try await phone.container.syncNow() }
      let titles = try phone.save { context in
        try context.all("Post").map { $0.value(forKey: "title") as? String ?? "" }.sorted()
      }
      #expect(titles == ["pad", "phone"])
      phone.faults.clear()
      try await world.settle(phone, pad)
      #expect(try phone.snapshot() == pad.snapshot())
    }
  }

  @Test("A batch whose connection always breaks holds up no import, and is split")
  func brokenConnection() async throws {
    try await ScriptedDevice.with { world, phone in
      let pad = try await world.device("pad")
      phone.cloud.onModify { batch in
        guard batch.operations.count > 1 else { return nil }
        throw CloudFailure.unreachable(reason: "The connection broke.")
      }
      try phone.save { context in
        for title in ["a", "b"] { _ = context.make("Post", ["title": title]) }
      }
      await #expect(throws: CloudFailure.self) { try await phone.mirror.syncNow() }
      try pad.save { _ = $0.make("Post", ["title": "pad"]) }
      try await pad.sync()
      // The first call may join a round that began before.
      for _ in 0..<2 { _ = try? await phone.mirror.syncNow() }
      #expect(try phone.titles() == ["a", "b", "pad"])
      for _ in 0..<8 { _ = try? await phone.mirror.syncNow() }
      try await phone.sync()
      try await pad.sync()
      #expect(try pad.snapshot() == phone.mirror.snapshot())
      #expect(try pad.snapshot().count == 3)
      try await pad.quit()
    }
  }

  @Test("A full database holds back its records alone, says so, and takes them once there is room")
  func fullDatabase() async throws {
    try await ScriptedDevice.with { world, phone in
      phone.cloud.onModify { _ in throw CloudFailure.overQuota(reason: "It is full.") }
      try phone.save { context in
        for title in ["a", "b", "c"] { _ = context.make("Post", ["title": title]) }
      }
      try await phone.sync()
      let reasons = try phone.mirror.status().parked.map(\.reason)
      #expect(reasons == ["It is full.", "It is full.", "It is full."])
      let event = try #require(try phone.events.last { $0.type == 2 && !$0.succeeded })
      #expect(event.errorReason?.contains("It is full.") == true)
      phone.cloud.onModify(nil)
      try await phone.sync()
      #expect(try phone.mirror.status().parked.isEmpty)
      let pad = try await world.device("pad")
      try await pad.sync()
      #expect(try pad.snapshot().count == 3)
      try await pad.quit()
    }
  }

  @Test("A full database first gets the deletions that free space")
  func deletionsInFullDatabase() async throws {
    try await ScriptedDevice.with { world, phone in
      try phone.save { _ = $0.make("Post", ["title": "old"]) }
      try await phone.sync()
      phone.cloud.onModify { batch in
        guard batch.operations.contains(where: { $0.kind != .delete }) else { return nil }
        throw CloudFailure.overQuota(reason: "It is full.")
      }
      try phone.save { context in
        for number in 0..<8 { _ = context.make("Post", ["title": "\(number)"]) }
      }
      try phone.save { try $0.delete($0.first("Post", "title", "old")) }
      await #expect(throws: CloudFailure.self) { try await phone.mirror.syncNow() }
      let pad = try await world.device("pad")
      try await pad.sync()
      #expect(try pad.snapshot().isEmpty)
      try await pad.quit()
    }
  }

  enum Obstacle: CaseIterable {
    case fullDatabase
    case refusedRecord
  }

  @Test(
    "The deletion of an owner waits for the move of a member that the server does not take",
    arguments: Obstacle.allCases
  )
  func moveBeforeDeletion(obstacle: Obstacle) async throws {
    try await ScriptedDevice.with { world, phone in
      let pad = try await world.device("pad")
      try phone.save { context in
        let post = context.make("Post", ["title": "former"])
        _ = context.make("Post", ["title": "new"])
        context.make("Attachment", ["name": "a"]).setValue(post, forKey: "post")
      }
      try await phone.sync()
      try await pad.sync()
      phone.cloud.onModify { batch in
        switch obstacle {
        case .fullDatabase:
          guard batch.operations.contains(where: { $0.kind != .delete }) else { return nil }
          throw CloudFailure.overQuota(reason: "It is full.")
        case .refusedRecord:
          guard batch.operations.contains(where: { $0.recordType == "CD_Attachment" }) else {
            return nil
          }
          throw CloudFailure.refused(reason: "No.")
        }
      }
      try phone.save { context in
        try context.first("Attachment", "name", "a")
          .setValue(try context.first("Post", "title", "new"), forKey: "post")
        context.processPendingChanges()
        context.delete(try context.first("Post", "title", "former"))
      }
      for _ in 0..<2 { _ = try? await phone.mirror.syncNow() }
      try await pad.sync()
      #expect(try pad.save { try $0.all("Attachment").count } == 1)
      #expect(try pad.save { try $0.all("Post").count } == 2)
      phone.cloud.onModify(nil)
      try await phone.sync()
      try await pad.sync()
      let left = try pad.save { context in
        let member = try context.first("Attachment", "name", "a")
        let owner = member.value(forKey: "post") as? NSManagedObject
        return [
          try context.all("Post").count, owner?.value(forKey: "title") as? String == "new" ? 1 : 0,
        ]
      }
      #expect(left == [1, 1])
      #expect(try pad.snapshot() == phone.mirror.snapshot())
      try await pad.quit()
    }
  }

  @Test("The files of batches that a full database refuses are removed")
  func filesOfRefusedBatches() async throws {
    try await ScriptedDevice.with { world, phone in
      phone.cloud.onModify { _ in throw CloudFailure.overQuota(reason: "It is full.") }
      try phone.save { context in
        for number in 0..<8 {
          _ = context.make("ImageData", ["data": Data(repeating: UInt8(number), count: 900_000)])
        }
      }
      await #expect(throws: CloudFailure.self) { try await phone.mirror.syncNow() }
      let folder = AssetFolder.url(
        forStoreAt: world.folder.appendingPathComponent("phone.sqlite")
      )
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
    }
  }

  @Test("A server that refuses every record does not receive a request for each")
  func refusalsInARow() async throws {
    try await ScriptedDevice.with { _, phone in
      phone.cloud.onModify { _ in throw CloudFailure.refused(reason: "No rights.") }
      try phone.save { context in
        for number in 0..<40 { _ = context.make("Post", ["title": "\(number)"]) }
      }
      phone.cloud.forgetCalls()
      await #expect(throws: CloudFailure.self) { try await phone.mirror.syncNow() }
      #expect(phone.cloud.batchesOfRounds.allSatisfy { $0 <= 16 })
    }
  }

  @Test("A batch at which the server always fails is split, until one record is parked alone")
  func failingBatch() async throws {
    try await ScriptedDevice.with { world, phone in
      phone.cloud.onModify { batch in
        guard batch.operations.contains(where: { $0.set["CD_title"] == .string("b") }) else {
          return nil
        }
        throw CloudFailure.busy(reason: "An error in the server.", retryAfter: nil)
      }
      try phone.save { context in
        for title in ["a", "b", "c"] { _ = context.make("Post", ["title": title]) }
      }
      for _ in 0..<30 { _ = try? await phone.mirror.syncNow() }
      let pad = try await world.device("pad")
      try await pad.sync()
      #expect(try pad.snapshot().count == 2)
      #expect(phone.mirror.journal.latest.contains { $0.step == .recordParked })
      try await pad.quit()
    }
  }

  @Test("A batch that breaks the connection is halved although others edit its records")
  func failingBatchOfEditedRecords() async throws {
    try await ScriptedDevice.with { world, phone in
      let pad = try await world.device("pad")
      try phone.save { context in
        for number in 0..<8 { _ = context.make("Post", ["title": "\(number)"]) }
      }
      try await phone.sync()
      try await pad.sync()
      phone.cloud.onModify { batch in
        guard batch.operations.count > 2 else { return nil }
        throw CloudFailure.unreachable(reason: "The connection broke.")
      }
      let views = Mutex(0)
      phone.cloud.onLookup { _ in
        // Another device edits one of the records each time.
        try pad.save { context in
          let number = views.withLock { views in
            views += 1
            return views
          }
          try context.first("Post", "title", "7").setValue(number, forKey: "views")
        }
        try await pad.sync()
        return nil
      }
      try phone.save { context in
        for post in try context.all("Post") { post.setValue("edited", forKey: "content") }
      }
      for _ in 0..<24 { _ = try? await phone.mirror.syncNow() }
      try await pad.sync()
      let contents = try pad.save { context in
        try context.all("Post").compactMap { $0.value(forKey: "content") as? String }
      }
      #expect(contents == Array(repeating: "edited", count: 8))
      try await pad.quit()
    }
  }

  @Test("A refused record fails the event of the export like CloudKit's partial failures")
  func partialFailure() async throws {
    try await ScriptedDevice.with { _, phone in
      phone.cloud.onModify { batch in
        batch.operations.map { _ in .refused(reason: "No such field in production.") }
      }
      try phone.save { _ = $0.make("Post", ["title": "a"]) }
      try await phone.sync()
      let event = try #require(try phone.events.last { $0.type == 2 && !$0.succeeded })
      #expect(event.errorDomain == CKErrorDomain)
      #expect(event.errorCode == CKError.Code.partialFailure.rawValue)
      #expect(event.errorReason?.contains("No such field in production.") == true)
      phone.cloud.onModify(nil)
      try await phone.sync()
    }
  }

  @Test("A value larger than the service accepts is parked alone, in both directions")
  func tooLargeValue() async throws {
    let world = try await World(limits: { $0.assetSize = 750_000 })
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try await world.settle(phone, pad)
    try phone.save { context in
      _ = context.make("Post", ["title": "small"])
      _ = context.make("ImageData", ["data": Data(repeating: 7, count: 800_000)])
    }
    try pad.save { _ = $0.make("Post", ["title": "pad"]) }
    try await world.settle(phone, pad, phone)
    #expect(try phone.container.mirroringStatus().first?.parked.map(\.entityName) == ["ImageData"])
    #expect(try pad.snapshot().count == 2)
    #expect(try phone.snapshot().count == 3)
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("A server that refuses everything gets a few requests, and then one after a pause")
  func noProgress() async throws {
    try await ScriptedDevice.with { _, phone in
      phone.cloud.onModify { batch in batch.operations.map { _ in .batchFailed } }
      try phone.save { _ = $0.make("Post", ["title": "a"]) }
      phone.cloud.forgetCalls()
      await #expect(throws: CloudFailure.self) { try await phone.mirror.syncNow() }
      #expect(phone.cloud.batchesOfRounds.allSatisfy { $0 <= 6 })
      phone.cloud.onModify(nil)
      try await phone.sync()
    }
  }

  @Test("A conflict whose record cannot be looked up deletes nothing here")
  func unreadableConflict() async throws {
    try await ScriptedDevice.with { world, phone in
      try phone.save { _ = $0.make("Post", ["title": "a"]) }
      try await phone.sync()
      phone.cloud.onModify { batch in batch.operations.map { _ in .conflict(nil) } }
      phone.cloud.onLookup { names in
        CloudLookup(unreadable: Dictionary(uniqueKeysWithValues: names.map { ($0, "No rights.") }))
      }
      try phone.save { try $0.first("Post", "title", "a").setValue("b", forKey: "title") }
      try await phone.sync()
      #expect(try phone.titles() == ["b"])
      #expect(try phone.mirror.status().parked.map(\.reason) == ["No rights."])
      phone.cloud.onModify(nil)
      phone.cloud.onLookup(nil)
      try await phone.sync()
      let pad = try await world.device("pad")
      try await pad.sync()
      #expect(try pad.snapshot() == phone.mirror.snapshot())
      try await pad.quit()
    }
  }

  @Test("A zone that is deleted between an import and an export parks no record")
  func missingZone() async throws {
    try await ScriptedDevice.with { world, phone in
      try phone.save { _ = $0.make("Post", ["title": "a"]) }
      try await phone.sync()
      let web = try await world.cloud.container(device: "web")
      phone.cloud.onModify { [cloud = phone.cloud] _ in
        cloud.onModify(nil)
        let zone = CKRecordZone.ID(
          zoneName: MirrorNames.zone,
          ownerName: CKCurrentUserDefaultName
        )
        _ = try await web.privateCloudDatabase.deleteRecordZone(withID: zone)
        return nil
      }
      try phone.save { _ = $0.make("Post", ["title": "b"]) }
      try await phone.sync()
      #expect(!phone.mirror.journal.latest.contains { $0.step == .recordParked })
      let pad = try await world.device("pad")
      try await pad.sync()
      #expect(try pad.snapshot() == phone.mirror.snapshot())
      #expect(try phone.titles() == ["a", "b"])
      try await pad.quit()
    }
  }

  @Test("A record that the server lost without a deletion is created again when it is edited")
  func lostRecord() async throws {
    try await ScriptedDevice.with { _, phone in
      try phone.save { _ = $0.make("Post", ["title": "a"]) }
      try await phone.sync()
      phone.cloud.onModify { batch in
        batch.operations.allSatisfy { $0.kind == .update }
          ? batch.operations.map { _ in .notFound }
          : batch.operations.map { _ in .saved(tag: "again", stamps: RecordStamps()) }
      }
      try phone.save { try $0.first("Post", "title", "a").setValue("b", forKey: "title") }
      try await phone.sync()
      #expect(try phone.titles() == ["b"])
      #expect(try phone.mirror.status().pendingCount == 0)
    }
  }

  @Test("A number that the service cannot represent causes no error")
  func notANumber() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        _ = context.make("VideoPost", ["title": "v", "length": Double.infinity])
        _ = context.make("Post", ["title": "p"])
      }
      try await world.settle(phone, pad)
      #expect(try pad.snapshot().count == 2)
      let length = try phone.save {
        try $0.first("VideoPost", "title", "v").value(forKey: "length")
      }
      #expect(length as? Double == .infinity)
    }
  }
}
