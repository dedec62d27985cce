import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("Objects that the deletion of their owner takes along")
struct CascadedObjectTests {
  private func with(
    _ body: (_ phone: ScriptedDevice, _ pad: TestDevice) async throws -> Void
  ) async throws {
    try await World.with("pad") { world, devices in
      let phone = try await ScriptedDevice("phone", in: world)
      try phone.save { context in
        _ = context.make("Post", ["title": "owner"])
        let image = context.make("ImageData", ["data": Data([1])])
        context.make("Attachment", ["name": "member"]).setValue(image, forKey: "imageData")
      }
      try await phone.settle(with: devices[0])
      try await body(phone, devices[0])
      try await phone.quit()
    }
  }

  private func move(_ context: NSManagedObjectContext) throws {
    let owner = try context.first("Post", "title", "owner")
    try context.first("Attachment", "name", "member").setValue(owner, forKey: "post")
  }

  private func kept(_ device: TestDevice) throws -> [RecoveredEdit] {
    try #require(device.container.storeMirrors.first).read { try $0.recoveredEdits() }
  }

  @Test("An object that an owner's deletion takes along unseen is in the recovery list")
  func unseenMember() async throws {
    try await with { phone, pad in
      try pad.save { context in
        try move(context)
        try context.first("Attachment", "name", "member").setValue("edited", forKey: "name")
      }
      // The other device deletes the owner before it receives the member, whose edits have been sent then.
      phone.faults.isOnline = false
      try phone.save { context in
        context.delete(try context.first("Post", "title", "owner"))
      }
      try await pad.sync()
      phone.faults.isOnline = true
      try await phone.settle(with: pad)
      #expect(try pad.snapshot().isEmpty)
      #expect(try phone.mirror.snapshot().isEmpty)
      let found = try kept(pad)
      #expect(Set(found.map(\.entityName)) == ["Attachment", "ImageData"])
      #expect(
        Set(found.map(\.reason)) == ["Another device deleted the object that this one belonged to."]
      )
      let edit = try #require(found.first { $0.entityName == "Attachment" })
      #expect(edit.fields["CD_name"] == .string("edited"))
    }
  }

  @Test("Members that the deletion of their owner had seen are in no recovery list")
  func seenMembers() async throws {
    try await with { phone, pad in
      try pad.save { try move($0) }
      try await phone.settle(with: pad)
      try phone.save { context in
        context.delete(try context.first("Post", "title", "owner"))
      }
      try await phone.settle(with: pad)
      #expect(try pad.snapshot().isEmpty)
      #expect(try kept(pad).isEmpty)
      #expect(try phone.mirror.read { try $0.recoveredEdits() }.isEmpty)
    }
  }

  /// Folders that own items, to which notes refer.
  private static func chain(_ rule: NSDeleteRule) -> NSManagedObjectModel {
    func entity(_ name: String) -> NSEntityDescription {
      BlogModel.entity(name, [BlogModel.attribute("title", .stringAttributeType)])
    }
    let (folder, item, note) = (entity("Folder"), entity("Item"), entity("Note"))
    BlogModel.relate(
      (folder, "items", true, .cascadeDeleteRule),
      (item, "folder", false, .nullifyDeleteRule)
    )
    BlogModel.relate((item, "notes", true, rule), (note, "item", false, .nullifyDeleteRule))
    let model = NSManagedObjectModel()
    model.entities = [folder, item, note]
    return model
  }

  @Test(
    "A link to an object that an owner's deletion took along is set again with the object",
    arguments: [NSDeleteRule.nullifyDeleteRule, .noActionDeleteRule]
  )
  func linkToTakenAlong(rule: NSDeleteRule) async throws {
    try await World.with("phone", "pad", model: Self.chain(rule)) { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Folder", ["title": "folder"]) }
      try await world.settle(phone, pad)
      phone.faults.isOnline = false
      try phone.save { $0.delete(try $0.first("Folder", "title", "folder")) }
      try pad.save { context in
        let item = context.make("Item", ["title": "item"])
        item.setValue(try context.first("Folder", "title", "folder"), forKey: "folder")
        context.make("Note", ["title": "note"]).setValue(item, forKey: "item")
      }
      try await pad.sync()
      phone.faults.isOnline = true
      try await world.settle(phone, pad)
      let entry = try #require(
        try pad.container.recoveryEntries().first { $0.entityName == "Item" }
      )
      try pad.container.restore(entry)
      try await world.settle(pad, phone)
      for device in [phone, pad] {
        let title = try device.save { context in
          let item = try context.first("Note", "title", "note").value(forKey: "item")
          return (item as? NSManagedObject)?.value(forKey: "title") as? String
        }
        #expect(title == "item", "\(device.name)")
      }
      #expect(try phone.snapshot() == pad.snapshot())
    }
  }

  @Test("The deletion of an owner follows those of its members where they need several batches")
  func largeDeletion() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    await phone.mirror.stopAndFinish()
    try phone.save { context in
      let post = context.make("Post", ["title": "owner"])
      for number in 0..<130 {
        let member = context.make("Attachment", ["name": "\(number)"])
        member.setValue(post, forKey: "post")
        member.setValue(context.make("ImageData", ["data": Data([1])]), forKey: "imageData")
      }
    }
    var types: [String] = []
    func send() throws -> Int {
      var batches = 0
      types = []
      try phone.mirror.write(MirrorAuthor.exporting) { session in
        try session.foldHistory()
        while let batch = try session.assembleBatch(limits: .init()) {
          batches += 1
          types += batch.operations.map(\.recordType)
          let outcomes = batch.operations.map { operation in
            operation.kind == .delete
              ? CloudOutcome.deleted
              : CloudOutcome.saved(tag: operation.name, stamps: RecordStamps())
          }
          _ = try session.settle(batch, outcomes, fetched: [:])
        }
      }
      return batches
    }
    _ = try send()
    #expect(types.count == 261)
    try phone.save { context in
      context.delete(try context.first("Post", "title", "owner"))
    }
    #expect(try send() == 2)
    let levels = types.map {
      ["CD_ImageData", "CD_Attachment", "CD_Post"].firstIndex(of: $0) ?? -1
    }
    #expect(levels.count == 261)
    #expect(levels == levels.sorted())
    try await phone.quit()
  }
}
