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

  @Test("Objects that went with another device's deletion are listed, and restored in any order")
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

  @Test("An entry is restored once, and a discarded one is gone")
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

  @Test("Values of an object that is there replace its own, as an edit that others get")
  func intoALivingObject() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "now", "content": "kept"]) }
      try await world.settle(phone, pad)
      let record = try #require(try phone.snapshot().keys.first)
      let mirror = try #require(phone.container.storeMirrors.first)
      try mirror.write(MirrorAuthor.setup) { session in
        try session.books.keep(
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
    }
  }

  @Test("An object that is restored while its deletion is on the way is made again everywhere")
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
      try mirror.write(MirrorAuthor.setup) { try $0.books.keep(entry) }
      // The server has the deletion, and the phone does not know it.
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
}
