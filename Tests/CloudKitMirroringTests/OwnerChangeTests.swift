import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("Objects that move to another owner before the former one is deleted")
struct OwnerChangeTests {
  private static let large = String(repeating: "long ", count: 160_000)

  private func with(
    pageLimit: Int,
    _ body: (_ phone: TestDevice, _ pad: ScriptedDevice) async throws -> Void
  ) async throws {
    try await World.with("phone") { world, devices in
      let pad = try await ScriptedDevice("pad", in: world, pageLimit: pageLimit)
      do {
        try await body(devices[0], pad)
      } catch {
        try? await pad.quit()
        throw error
      }
      try await pad.quit()
    }
  }

  private func settle(_ phone: TestDevice, _ pad: ScriptedDevice) async throws {
    for _ in 0..<3 {
      try await phone.sync()
      try await pad.sync()
    }
  }

  @Test(
    "A one-to-one partner that leaves an object before its deletion stays on every device",
    arguments: [1, 200],
    [true, false]
  )
  func oneToOne(pageLimit: Int, hasNewOwner: Bool) async throws {
    try await with(pageLimit: pageLimit) { phone, pad in
      try phone.save { context in
        let image = context.make("ImageData", ["data": Data([1])])
        context.make("Attachment", ["name": "former"]).setValue(image, forKey: "imageData")
      }
      try await settle(phone, pad)
      try phone.save { context in
        let former = try context.first("Attachment", "name", "former")
        let image = try #require(try context.all("ImageData").first)
        let owner = hasNewOwner ? context.make("Attachment", ["name": "new"]) : nil
        image.setValue(owner, forKey: "attachment")
        context.delete(former)
      }
      try await settle(phone, pad)
      let snapshot = try phone.snapshot()
      #expect(snapshot.values.contains { $0["CD_entityName"] == "string(\"ImageData\")" })
      #expect(snapshot.count == (hasNewOwner ? 2 : 1))
      #expect(try pad.mirror.snapshot() == snapshot)
    }
  }

  @Test("A member that a later page moves to another owner outlives the deletion of the former one")
  func laterPage() async throws {
    try await with(pageLimit: 1) { phone, pad in
      try phone.save { context in
        let post = context.make("Post", ["title": "former"])
        context.make("Attachment", ["name": "a"]).setValue(post, forKey: "post")
      }
      try await settle(phone, pad)
      try phone.save { context in
        let post = context.make("Post", ["title": "new"])
        try context.first("Attachment", "name", "a").setValue(post, forKey: "post")
        // Its members are no longer those of the moment before.
        context.processPendingChanges()
        context.delete(try context.first("Post", "title", "former"))
      }
      try await phone.sync()
      // The record of the member comes after the deletion in the feed.
      try phone.save { try $0.first("Attachment", "name", "a").setValue("b", forKey: "name") }
      try await settle(phone, pad)
      let snapshot = try phone.snapshot()
      #expect(snapshot.count == 2)
      #expect(try pad.mirror.snapshot() == snapshot)
      #expect(try pad.mirror.read { try $0.goneRecords(limit: 10) }.isEmpty)
    }
  }

  @Test("The deletion of an owner waits while the record of a member cannot be read")
  func unreadableMember() async throws {
    try await with(pageLimit: 200) { phone, pad in
      try phone.save { context in
        let post = context.make("Post", ["title": "former"])
        context.make("Attachment", ["name": "a"]).setValue(post, forKey: "post")
      }
      try await settle(phone, pad)
      try phone.save { context in
        let post = context.make("Post", ["title": "new"])
        let member = try context.first("Attachment", "name", "a")
        member.setValue(post, forKey: "post")
        member.setValue(Self.large, forKey: "name")
        context.processPendingChanges()
        context.delete(try context.first("Post", "title", "former"))
      }
      try await phone.sync()
      pad.faults.add(.fail(status: 500), to: "assets", count: .max)
      try await pad.sync()
      #expect(try pad.titles() == ["former", "new"])
      pad.faults.clear()
      try await settle(phone, pad)
      #expect(try pad.titles() == ["new"])
      let snapshot = try phone.snapshot()
      #expect(snapshot.count == 2)
      #expect(try pad.mirror.snapshot() == snapshot)
    }
  }

  @Test("A record that the feed lists again after its deletion is not deleted at the feed's end")
  func createdAgain() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { _ = $0.make("Post", ["title": "old"]) }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    try phone.mirror.write(MirrorAuthor.importing) { session in
      let name = try #require(try session.metadata.record(entity: "Post", key: 1)).name
      let generation = try session.metadata.zone(MirrorNames.zone).generation
      func apply(_ records: [CloudRecord], deleted: [String]) throws {
        try session.apply(records: records, deletedNames: deleted, generation: generation)
      }
      func end() throws -> [String] {
        var effect = ImportEffect()
        let next = try session.applyGoneRecords(
          after: "",
          limit: 10,
          generation: generation,
          &effect
        )
        #expect(next == nil)
        return effect.deleted
      }
      let record = CloudRecord(
        name: name,
        recordType: "CD_Post",
        tag: "again",
        fields: FieldBag(["CD_entityName": .string("Post"), "CD_title": .string("new")])
      )
      try apply([], deleted: [name])
      try apply([record], deleted: [])
      #expect(try end().isEmpty)
      #expect(try session.metadata.record(named: name)?.tag == "again")
      try apply([], deleted: [name])
      #expect(try end() == [name])
      #expect(try session.metadata.goneRecords(limit: 10).isEmpty)
    }
    #expect(try phone.titles().isEmpty)
    try await phone.quit()
  }
}
