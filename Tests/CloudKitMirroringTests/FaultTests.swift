import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite struct FaultTests {
  /// Syncs through failures: each try may fail, the last must not.
  private func persist(_ device: TestDevice, tries: Int = 6) async throws {
    for _ in 1..<tries {
      do {
        return try await device.sync()
      } catch {
        continue
      }
    }
    try await device.sync()
  }

  @Test("A reply lost after the server committed causes no duplicate and loses no edit")
  func lostReply() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try await world.settle(phone, pad)
      phone.faults.add(.loseReply, to: "records/modify", count: 2)
      try phone.save { context in
        let tag = context.make("Tag", ["name": "t"])
        context.make("Post", ["title": "a"]).setValue(NSSet(object: tag), forKey: "tags")
      }
      try await persist(phone)
      try await pad.sync()
      #expect(try pad.snapshot() == phone.snapshot())
      #expect(try pad.snapshot().count == 2)
      phone.faults.add(.loseReply, to: "records/modify")
      try phone.save { try $0.first("Post", "title", "a").setValue("b", forKey: "title") }
      // An edit of another property conflicts with the one whose reply was lost.
      try pad.save { try $0.first("Post", "title", "a").setValue("c", forKey: "content") }
      try await persist(phone)
      try await persist(pad)
      try await world.settle(phone, pad)
      #expect(try pad.snapshot() == phone.snapshot())
      try pad.save { context in
        let post = try context.first("Post", "title", "b")
        #expect(post.value(forKey: "content") as? String == "c")
      }
    }
  }

  @Test("Any request may fail once, before or after the server executes it, and devices converge")
  func everyRequestOnce() async throws {
    let verbs = ["records/modify", "changes/zone", "changes/database"]
    for verb in verbs {
      for fault in [FaultPlan.Fault.loseRequest, .loseReply, .fail(status: 503)] {
        for skips in 0..<2 {
          try await World.with("phone", "pad") { world, devices in
            let (phone, pad) = (devices[0], devices[1])
            try phone.save { context in
              let post = context.make("Post", ["title": "p"])
              context.make("Attachment", ["name": "a"]).setValue(post, forKey: "post")
            }
            try await world.settle(phone, pad)
            phone.faults.add(fault, to: verb, skipping: skips)
            pad.faults.add(fault, to: verb, skipping: skips)
            try phone.save { try $0.first("Post", "title", "p").setValue("q", forKey: "title") }
            try pad.save { context in
              try context.first("Attachment", "name", "a").setValue("b", forKey: "name")
              _ = context.make("Tag", ["name": "new"])
            }
            for _ in 0..<2 {
              try await persist(phone)
              try await persist(pad)
            }
            try await world.settle(phone, pad)
            #expect(try phone.snapshot() == pad.snapshot(), "\(verb) \(fault) \(skips)")
            #expect(try phone.snapshot().count == 3, "\(verb) \(fault) \(skips)")
          }
        }
      }
    }
  }

  @Test("R4: objects created offline before a restart arrive once")
  func restartOffline() async throws {
    try await World.with("pad") { world, devices in
      let pad = devices[0]
      let phone = try await world.device("phone")
      phone.faults.isOnline = false
      try phone.save { _ = $0.make("Post", ["title": "offline"]) }
      try await phone.quit()
      try phone.launch()
      phone.faults.isOnline = true
      try await world.settle(phone, pad)
      #expect(try pad.snapshot().count == 1)
      #expect(try pad.snapshot() == phone.snapshot())
      try await phone.quit()
    }
  }

  @Test("R3: an edit made before a restart survives the import of an older copy")
  func restartBeforeExport() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "old", "content": "old"]) }
      try await world.settle(phone, pad)
      phone.faults.isOnline = false
      try phone.save { try $0.first("Post", "title", "old").setValue("mine", forKey: "title") }
      try pad.save { try $0.first("Post", "title", "old").setValue("theirs", forKey: "content") }
      try await pad.sync()
      try await phone.quit()
      try phone.launch()
      phone.faults.isOnline = true
      try await world.settle(phone, pad)
      for device in [phone, pad] {
        try device.save { context in
          let post = try context.first("Post", "title", "mine")
          #expect(post.value(forKey: "content") as? String == "theirs")
        }
      }
    }
  }

  @Test("A restart between a request and its reply sends nothing twice")
  func restartInFlight() async throws {
    for fault in [FaultPlan.Fault.loseRequest, .loseReply] {
      try await World.with("phone", "pad") { world, devices in
        let (phone, pad) = (devices[0], devices[1])
        try await world.settle(phone, pad)
        phone.faults.add(fault, to: "records/modify")
        try phone.save { context in
          let post = context.make("Post", ["title": "p"])
          context.make("Attachment", ["name": "a"]).setValue(post, forKey: "post")
          let tag = context.make("Tag", ["name": "t"])
          post.setValue(NSSet(object: tag), forKey: "tags")
        }
        _ = try? await phone.container.syncNow()
        try await phone.quit()
        try phone.launch()
        try await world.settle(phone, pad)
        #expect(try pad.snapshot() == phone.snapshot())
        #expect(try pad.snapshot().count == 3)
        let mirror = try #require(phone.container.storeMirrors.first)
        #expect(try mirror.read { try $0.openBatch() } == nil)
      }
    }
  }

  @Test("Saves succeed while the server is down, and all arrive when it is back")
  func serverAway() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try await world.settle(phone, pad)
      phone.faults.isOnline = false
      for number in 0..<10 {
        try phone.save { _ = $0.make("Post", ["title": "\(number)"]) }
      }
      await #expect(throws: (any Error).self) { try await phone.container.syncNow() }
      let status = try #require(try phone.container.mirroringStatus().first)
      #expect(status.lastError != nil)
      phone.faults.isOnline = true
      try await world.settle(phone, pad)
      #expect(try pad.snapshot() == phone.snapshot())
      #expect(try phone.container.mirroringStatus().first?.pendingCount == 0)
    }
  }

  @Test("R6: a deleted zone is created again, no local object is lost, and devices agree")
  func zoneDeleted() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        let tag = context.make("Tag", ["name": "t"])
        context.make("Post", ["title": "p"]).setValue(NSSet(object: tag), forKey: "tags")
      }
      try await world.settle(phone, pad)
      let before = try phone.snapshot()
      try await world.deleteZone()
      try await persist(phone)
      try await persist(pad)
      try await world.settle(phone, pad)
      #expect(try phone.snapshot() == before)
      #expect(try pad.snapshot() == before)
    }
  }

  @Test("A zone that another device created again and a pending edit are both kept")
  func zoneMadeAgain() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "p", "content": "old"]) }
      try await world.settle(phone, pad)
      pad.faults.isOnline = false
      try pad.save { try $0.first("Post", "title", "p").setValue("mine", forKey: "content") }
      try await world.deleteZone()
      try phone.save { try $0.first("Post", "title", "p").setValue(7, forKey: "views") }
      try await persist(phone)
      pad.faults.isOnline = true
      try await persist(pad)
      try await world.settle(phone, pad)
      let snapshot = try phone.snapshot()
      #expect(try pad.snapshot() == snapshot)
      #expect(snapshot.count == 1)
      #expect(snapshot.values.first?["CD_content"] == "string(\"mine\")")
      #expect(snapshot.values.first?["CD_views"] == "integer(7)")
    }
  }

  @Test("A record that the server refuses is parked with its reason, and the rest is exported")
  func parked() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      // From now on the field is a number in this container.
      let other = try await world.cloud.container(device: "web")
      let zone = CKRecordZone.ID(
        zoneName: "com.apple.coredata.cloudkit.zone",
        ownerName: "__defaultOwner__"
      )
      try await world.settle(phone, pad)
      let record = CKRecord(recordType: "CD_Tag", recordID: .init(recordName: "x", zoneID: zone))
      record["CD_name"] = 1
      _ = try await other.privateCloudDatabase.save(record)
      try phone.save { context in
        _ = context.make("Tag", ["name": "text"])
        _ = context.make("Post", ["title": "fine"])
      }
      try await world.settle(phone, pad)
      let status = try #require(try phone.container.mirroringStatus().first)
      #expect(status.parked.map(\.entityName) == ["Tag"])
      #expect(status.parked.first?.reason.isEmpty == false)
      #expect(try pad.save { context in try context.all("Post").count } == 1)
    }
  }

  @Test("When history is deleted, changes that were not exported yet are still exported")
  func historyDeleted() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try await world.settle(phone, pad)
      phone.faults.isOnline = false
      try phone.save { _ = $0.make("Post", ["title": "before"]) }
      try phone.save { context in
        let request = NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
        try context.execute(request)
      }
      phone.faults.isOnline = true
      try await world.settle(phone, pad)
      #expect(try pad.snapshot().count == 1)
    }
  }

  @Test("R13: objects saved without mirroring and without history are found by comparison")
  func historyGap() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        for title in ["edited", "deleted", "kept"] { _ = context.make("Post", ["title": title]) }
      }
      try await world.settle(phone, pad)
      try await phone.quit()
      let plain = NSPersistentContainer(name: "phone", managedObjectModel: world.model)
      let description = NSPersistentStoreDescription(url: phone.storeURL)
      description.setOption(NSNumber(value: true), forKey: NSPersistentHistoryTrackingKey)
      plain.persistentStoreDescriptions = [description]
      plain.loadPersistentStores { _, error in #expect(error == nil) }
      let context = plain.newBackgroundContext()
      try context.performAndWait {
        try context.first("Post", "title", "edited").setValue("offline", forKey: "content")
        try context.delete(context.first("Post", "title", "deleted"))
        _ = context.make("Post", ["title": "made"])
        try context.save()
        try context.execute(
          NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
        )
      }
      for store in plain.persistentStoreCoordinator.persistentStores {
        try plain.persistentStoreCoordinator.remove(store)
      }
      try pad.save { try $0.first("Post", "title", "edited").setValue(5, forKey: "views") }
      try phone.launch()
      try await world.settle(phone, pad)
      let snapshot = try phone.snapshot()
      #expect(try pad.snapshot() == snapshot)
      let titles = snapshot.values.compactMap { $0["CD_title"] }.sorted()
      #expect(titles == ["edited", "kept", "made"].map { "string(\"\($0)\")" })
      let edited = snapshot.values.first { $0["CD_title"] == "string(\"edited\")" }
      #expect(edited?["CD_content"] == "string(\"offline\")")
      #expect(edited?["CD_views"] == "integer(5)")
    }
  }

  @Test("A deletion that was undone, and an edit after it, in one reading of the history")
  func undoneDeletion() async throws {
    let world = try await World()
    let pad = try await world.device("pad")
    let phone = try await world.device("phone")
    try phone.save { context in
      let tag = context.make("Tag", ["name": "t"])
      context.make("Post", ["title": "old"]).setValue(NSSet(object: tag), forKey: "tags")
    }
    try await world.settle(phone, pad)
    try await phone.quit()
    let plain = NSPersistentContainer(name: "phone", managedObjectModel: world.model)
    let description = NSPersistentStoreDescription(url: phone.storeURL)
    description.setOption(NSNumber(value: true), forKey: NSPersistentHistoryTrackingKey)
    plain.persistentStoreDescriptions = [description]
    plain.loadPersistentStores { _, error in #expect(error == nil) }
    let context = plain.newBackgroundContext()
    try context.performAndWait {
      let manager = UndoManager()
      manager.groupsByEvent = false
      context.undoManager = manager
      let post = try context.first("Post", "title", "old")
      let identifier = post.objectID
      manager.beginUndoGrouping()
      context.delete(post)
      manager.endUndoGrouping()
      try context.save()
      context.undo()
      manager.disableUndoRegistration()
      #expect(post.objectID == identifier)
      post.setValue("new", forKey: "title")
      try context.save()
    }
    for store in plain.persistentStoreCoordinator.persistentStores {
      try plain.persistentStoreCoordinator.remove(store)
    }
    try phone.launch()
    try await world.settle(phone, pad)
    #expect(try phone.snapshot() == pad.snapshot())
    for device in [phone, pad] {
      let links = try device.save { context in
        let post = try context.first("Post", "title", "new")
        return (post.value(forKey: "tags") as? NSSet)?.count
      }
      #expect(links == 1)
    }
    #expect(try phone.snapshot().count == 2)
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("A store that was put back from a copy uses no number again that the server answers for")
  func restoredStore() async throws {
    try await World.with("pad") { world, devices in
      let pad = devices[0]
      let phone = try await world.device("phone")
      try phone.save { _ = $0.make("Post", ["title": "old"]) }
      try await world.settle(phone, pad)
      try await phone.quit()
      let copy = world.folder.appendingPathComponent("copy.sqlite")
      try FileManager.default.copyItem(at: phone.storeURL, to: copy)
      try phone.launch()
      try phone.save { try $0.first("Post", "title", "old").setValue("first", forKey: "title") }
      try await world.settle(phone, pad)
      try await phone.quit()
      for suffix in ["", "-wal", "-shm"] {
        try? FileManager.default.removeItem(atPath: phone.storeURL.path + suffix)
      }
      try FileManager.default.moveItem(at: copy, to: phone.storeURL)
      try phone.launch()
      try phone.save { try $0.first("Post", "title", "old").setValue("second", forKey: "title") }
      try await world.settle(phone, pad)
      #expect(try phone.snapshot() == pad.snapshot())
      try pad.save { _ = try $0.first("Post", "title", "second") }
      try await phone.quit()
    }
  }
}
