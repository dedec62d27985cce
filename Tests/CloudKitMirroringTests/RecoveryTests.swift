import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCloudKit
import OpenCoreData
import Testing

@Suite("The recovery list") struct RecoveryTests {
  private static let long = String(repeating: "long ", count: 160_000)

  private func title(_ device: TestDevice) throws -> String? {
    try device.save { try $0.all("Post").first?.value(forKey: "title") as? String }
  }

  /// Both devices have a post; then the phone deletes it while the pad edits and extends it.
  private func deleteWhileEdited(
    _ world: World,
    _ phone: TestDevice,
    _ pad: TestDevice
  ) async throws {
    try phone.save { context in
      let tag = context.make("Tag", ["name": "tag"])
      context.make("Post", ["title": "old"]).setValue(NSSet(object: tag), forKey: "tags")
    }
    try await world.settle(phone, pad)
    phone.faults.isOnline = false
    pad.faults.isOnline = false
    try phone.save { context in for post in try context.all("Post") { context.delete(post) } }
    try pad.save { context in
      let post = try context.first("Post", "title", "old")
      post.setValue("new", forKey: "title")
      post.setValue(Self.long, forKey: "content")
      context.make("Attachment", ["name": "late"]).setValue(post, forKey: "post")
    }
    phone.faults.isOnline = true
    try await phone.sync()
    pad.faults.isOnline = true
    try await world.settle(pad, phone)
  }

  @Test("Objects that another device's deletion deleted are listed, and restored in any order")
  func restoring() async throws {
    for order in [["Attachment", "Post"], ["Post", "Attachment"]] {
      try await World.with("phone", "pad") { world, devices in
        let (phone, pad) = (devices[0], devices[1])
        try await deleteWhileEdited(world, phone, pad)
        #expect(try pad.save { try $0.all("Post").count + $0.all("Attachment").count } == 0)
        let entries = try pad.container.recoveryEntries()
        #expect(entries.map(\.entityName).sorted() == ["Attachment", "Post"])
        let post = try #require(entries.first { $0.entityName == "Post" })
        let attachment = try #require(entries.first { $0.entityName == "Attachment" })
        #expect(post.propertyNames == ["content", "tags", "title"])
        #expect(post.value(forKey: "title") as? String == "new")
        #expect(post.value(forKey: "content") as? String == Self.long)
        #expect((post.value(forKey: "tags") as? Set<CKRecord.ID>)?.count == 1)
        #expect(post.value(forKey: "nothing") == nil)
        #expect(attachment.value(forKey: "post") as? CKRecord.ID == post.recordID)
        for name in order {
          try pad.container.restore(try #require(entries.first { $0.entityName == name }))
        }
        #expect(try pad.container.recoveryEntries().isEmpty)
        try await world.settle(pad, phone)
        let snapshot = try phone.snapshot()
        #expect(try pad.snapshot() == snapshot)
        #expect(snapshot[post.recordID.recordName]?["CD_title"] == "string(\"new\")")
        #expect(snapshot[post.recordID.recordName]?["tags"] != nil)
        let link = snapshot[attachment.recordID.recordName]?["CD_post"]
        #expect(link == "string(\"\(post.recordID.recordName)\")")
      }
    }
  }

  @Test("An entry is restored once, and a discarded one is removed")
  func onceOrNever() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try await deleteWhileEdited(world, phone, pad)
      let entries = try pad.container.recoveryEntries()
      let post = try #require(entries.first { $0.entityName == "Post" })
      let restored = try pad.container.restore(post)
      let again = #expect(throws: NSError.self) { try pad.container.restore(post) }
      #expect(again?.code == 134_490)
      #expect(pad.container.recordID(for: restored) == post.recordID)
      #expect(try pad.save { try $0.all("Post").count } == 1)
      try pad.container.discard(entries)
      #expect(try pad.container.recoveryEntries().isEmpty)
      try await world.settle(pad, phone)
      #expect(try phone.save { try $0.all("Attachment").count } == 0)
      #expect(try title(phone) == "new")
    }
  }

  @Test("An edit that lost against this device's deletion is kept with its large value")
  func largeValueOfTheOther() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "old"]) }
      try await world.settle(phone, pad)
      phone.faults.isOnline = false
      try phone.save { context in for post in try context.all("Post") { context.delete(post) } }
      try pad.save { try $0.first("Post", "title", "old").setValue(Self.long, forKey: "content") }
      try await pad.sync()
      phone.faults.isOnline = true
      try await world.settle(phone, pad)
      let entry = try #require(try phone.container.recoveryEntries().first)
      #expect(entry.value(forKey: "content") as? String == Self.long)
      try phone.container.restore(entry)
      try await world.settle(phone, pad)
      #expect(try pad.snapshot() == phone.snapshot())
      #expect(try title(pad) == "old")
    }
  }

  @Test("Restoring values of an existing object replaces its own, as an edit that is exported")
  func intoALivingObject() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "now", "content": "kept"]) }
      try await world.settle(phone, pad)
      let record = try #require(try phone.snapshot().keys.first)
      let mirror = try #require(phone.container.storeMirrors.first)
      try mirror.write(MirrorAuthor.setup) { session in
        try session.metadata.keep(
          RecoveredEdit(
            record: record,
            entityName: "Post",
            reason: "test",
            noted: 0,
            fields: FieldBag(["CD_title": .string("then")])
          )
        )
      }
      let entry = try #require(try phone.container.recoveryEntries().first)
      try phone.container.restore(entry)
      try await world.settle(phone, pad)
      #expect(try title(pad) == "then")
      let content = try pad.save { try $0.all("Post").first?.value(forKey: "content") as? String }
      #expect(content == "kept")
      // The replaced values are in the list.
      let replaced = try phone.container.recoveryEntries()
      #expect(replaced.map(\.propertyNames) == [["title"]])
      #expect(replaced.first?.value(forKey: "title") as? String == "now")
    }
  }

  @Test("An object that is restored while its deletion is being sent is created again everywhere")
  func whileTheDeletionIsSent() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "here"]) }
      try await world.settle(phone, pad)
      let record = try #require(try phone.snapshot().keys.first)
      let mirror = try #require(phone.container.storeMirrors.first)
      let entry = RecoveredEdit(
        record: record,
        entityName: "Post",
        reason: "test",
        noted: 0,
        fields: FieldBag([
          "CD_title": .string("here"), MirrorNames.entityName: .string("Post"),
        ])
      )
      try mirror.write(MirrorAuthor.setup) { try $0.metadata.keep(entry) }
      // The server has executed the deletion, without the phone having its reply.
      phone.faults.add(.loseReply, to: "records/modify", count: .max)
      try phone.save { context in for post in try context.all("Post") { context.delete(post) } }
      _ = try? await phone.sync()
      #expect(try mirror.read { try $0.openBatch() } != nil)
      try phone.container.restore(try #require(try phone.container.recoveryEntries().first))
      phone.faults.clear()
      try await world.settle(phone, pad)
      #expect(try title(phone) == "here")
      #expect(try phone.snapshot() == pad.snapshot())
      #expect(try phone.snapshot().keys.first == record)
    }
  }

  private func restoreAll(_ device: TestDevice, _ entityName: String) throws {
    for entry in try device.container.recoveryEntries() where entry.entityName == entityName {
      try device.container.restore(entry)
    }
  }

  @Test("If two devices restore one object, both edits are kept", arguments: [true, false])
  func restoredTwice(importsFirst: Bool) async throws {
    try await World.with("phone", "pad", "desk") { world, devices in
      let (phone, pad, desk) = (devices[0], devices[1], devices[2])
      try phone.save { _ = $0.make("Post", ["title": "old", "content": "old", "views": 1]) }
      try await world.settle(phone, pad, desk)
      for device in [pad, desk] { device.faults.isOnline = false }
      try phone.save { context in for post in try context.all("Post") { context.delete(post) } }
      try await phone.sync()
      try pad.save { try $0.all("Post").first?.setValue("pad", forKey: "title") }
      try desk.save { try $0.all("Post").first?.setValue("desk", forKey: "content") }
      for device in [pad, desk] {
        device.faults.isOnline = true
        try await device.sync()
        #expect(try device.container.recoveryEntries().count == 1)
      }
      // The values restored offline are in an open batch, which is sent before the import.
      pad.faults.isOnline = importsFirst
      try restoreAll(desk, "Post")
      try await desk.sync()
      try restoreAll(pad, "Post")
      if !importsFirst { _ = try? await pad.sync() }
      pad.faults.isOnline = true
      try await world.settle(pad, desk, phone)
      #expect(try title(pad) == "pad")
      let kept = try pad.container.recoveryEntries().flatMap { entry in
        [entry.value(forKey: "content") as? String].compactMap(\.self)
      }
      #expect(kept == ["desk"])
      #expect(try pad.snapshot() == phone.snapshot())
      #expect(try desk.snapshot() == phone.snapshot())
    }
  }

  @Test(
    "A many-to-many link between two restored objects is restored in either order",
    arguments: [["Post", "Tag"], ["Tag", "Post"]]
  )
  func linkOfTwo(order: [String]) async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        let tag = context.make("Tag", ["name": "tag"])
        context.make("Post", ["title": "old"]).setValue(NSSet(object: tag), forKey: "tags")
      }
      try await world.settle(phone, pad)
      pad.faults.isOnline = false
      try phone.save { context in
        for object in try context.all("Post") + context.all("Tag") { context.delete(object) }
      }
      try await phone.sync()
      try pad.save { context in
        try context.all("Post").first?.setValue("new", forKey: "title")
        try context.all("Tag").first?.setValue("new", forKey: "name")
      }
      pad.faults.isOnline = true
      try await world.settle(pad)
      for name in order {
        try restoreAll(pad, name)
        try await pad.sync()
      }
      try await world.settle(pad, phone)
      let linked = try phone.save { context in
        (try context.all("Post").first?.value(forKey: "tags") as? NSSet)?.count
      }
      #expect(linked == 1)
      #expect(try pad.snapshot() == phone.snapshot())
    }
  }

  @Test("A restored link is sent if another device restores its object")
  func linkOfTwoDevices() async throws {
    try await World.with("phone", "pad", "desk") { world, devices in
      let (phone, pad, desk) = (devices[0], devices[1], devices[2])
      try phone.save { context in
        let post = context.make("Post", ["title": "old"])
        context.make("Attachment", ["name": "old"]).setValue(post, forKey: "post")
      }
      try await world.settle(phone, pad, desk)
      for device in [pad, desk] { device.faults.isOnline = false }
      try phone.save { context in for post in try context.all("Post") { context.delete(post) } }
      try await phone.sync()
      try pad.save { try $0.all("Attachment").first?.setValue("new", forKey: "name") }
      try desk.save { try $0.all("Post").first?.setValue("new", forKey: "title") }
      for device in [pad, desk] {
        device.faults.isOnline = true
        try await world.settle(device)
      }
      try restoreAll(pad, "Attachment")
      try await pad.sync()
      try restoreAll(desk, "Post")
      try await world.settle(desk, pad, phone)
      let linked = try phone.save { context in
        (try context.all("Attachment").first?.value(forKey: "post") as? NSManagedObject)?
          .value(forKey: "title") as? String
      }
      #expect(linked == "new")
      #expect(try pad.snapshot() == phone.snapshot())
    }
  }

  @Test("The entry of an object has its links if an earlier page of the feed deletes their edges")
  func linksOnAnEarlierPage() async throws {
    try await World.with("phone") { world, devices in
      let phone = devices[0]
      let pad = try await ScriptedDevice("pad", in: world, pageLimit: 1)
      try phone.save { context in
        let tag = context.make("Tag", ["name": "tag"])
        let other = context.make("Tag", ["name": "other"])
        context.make("Post", ["title": "old"]).setValue(NSSet(object: tag), forKey: "tags")
        context.make("Post", ["title": "kept"])
          .setValue(NSSet(objects: tag, other), forKey: "tags")
      }
      try await phone.sync()
      try await pad.sync()
      pad.faults.isOnline = false
      try pad.save { try $0.first("Post", "title", "old").setValue("new", forKey: "title") }
      try phone.save { context in
        context.delete(try context.first("Post", "title", "old"))
        let tag = try context.first("Tag", "name", "tag")
        try context.first("Post", "title", "kept").setValue(NSSet(object: tag), forKey: "tags")
      }
      try await phone.sync()
      pad.faults.isOnline = true
      try await pad.sync()
      let entry = try #require(try pad.mirror.read { try $0.recoveredEdits() }.first)
      #expect(entry.fields["CD_title"] == .string("new"))
      #expect(entry.fields["tags"] != nil)
      #expect(try pad.mirror.read { try $0.goneEdges(limit: 10) }.isEmpty)
      #expect(try pad.mirror.snapshot() == phone.snapshot())
      try await pad.quit()
    }
  }

  @Test("An entry of an object that never had a record gets a record name of its own")
  func entryWithoutARecord() async throws {
    try await World.with("phone") { _, devices in
      let phone = devices[0]
      let mirror = try #require(phone.container.storeMirrors.first)
      let fields = FieldBag([
        "CD_title": .string("a"), MirrorNames.entityName: .string("Post"),
      ])
      try mirror.write(MirrorAuthor.setup) { session in
        try session.metadata.keep(
          RecoveredEdit(
            record: "Post/1",
            entityName: "Post",
            reason: "test",
            noted: 0,
            fields: fields
          )
        )
      }
      try restoreAll(phone, "Post")
      try await phone.sync()
      #expect(try title(phone) == "a")
      let name = try #require(try phone.snapshot().keys.first)
      #expect(UUID(uuidString: name) != nil)
    }
  }
}
