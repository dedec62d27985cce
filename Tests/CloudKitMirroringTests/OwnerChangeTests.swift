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

  /// Saves a post with an attachment.
  private func makeMember(on phone: TestDevice) throws {
    try phone.save { context in
      let post = context.make("Post", ["title": "former"])
      context.make("Attachment", ["name": "a"]).setValue(post, forKey: "post")
    }
  }

  /// Moves the attachment to a new post, and deletes its former one.
  private func moveMember(on phone: TestDevice, name: String = "a") throws {
    try phone.save { context in
      let post = context.make("Post", ["title": "new"])
      let member = try context.first("Attachment", "name", "a")
      member.setValue(post, forKey: "post")
      if name != "a" { member.setValue(name, forKey: "name") }
      // Its members are no longer those of the moment before.
      context.processPendingChanges()
      context.delete(try context.first("Post", "title", "former"))
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
      try makeMember(on: phone)
      try await settle(phone, pad)
      try moveMember(on: phone)
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
      try makeMember(on: phone)
      try await settle(phone, pad)
      try moveMember(on: phone, name: Self.large)
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

  @Test("An edit of an object whose deletion waits does not create its record again")
  func editWhileWaiting() async throws {
    try await with(pageLimit: 200) { phone, pad in
      try makeMember(on: phone)
      try await settle(phone, pad)
      try moveMember(on: phone, name: Self.large)
      try await phone.sync()
      pad.faults.add(.fail(status: 500), to: "assets", count: .max)
      try await pad.sync()
      try pad.save { try $0.first("Post", "title", "former").setValue("edited", forKey: "title") }
      for _ in 0..<3 {
        try await pad.sync()
        try await phone.sync()
      }
      #expect(try pad.titles() == ["edited", "new"])
      pad.faults.clear()
      try await settle(phone, pad)
      #expect(try pad.titles() == ["new"])
      #expect(try pad.mirror.snapshot() == phone.snapshot())
      let kept = try pad.mirror.read { try $0.recoveredEdits() }
      #expect(kept.map { $0.fields["CD_title"] } == [.string("edited")])
    }
  }

  /// Runs the body in a session of a stopped device with a post and an attachment of it.
  private func withMember(
    _ body: (MirrorSession, _ post: RecordMetadata, _ member: CloudRecord) throws -> Void
  ) async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { context in
      let post = context.make("Post", ["title": "owner"])
      context.make("Attachment", ["name": "a"]).setValue(post, forKey: "post")
    }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    try phone.mirror.write(MirrorAuthor.importing) { session in
      let post = try #require(try session.metadata.record(entity: "Post", key: 1))
      let member = try #require(try session.metadata.record(entity: "Attachment", key: 1))
      let record = CloudRecord(
        name: member.name,
        recordType: member.recordType,
        tag: "again",
        fields: FieldBag([
          "CD_entityName": .string("Attachment"), "CD_name": .string("b"),
          "CD_post": .string(post.name),
        ])
      )
      // The device does not know yet that the member belongs to the post.
      let reference = try #require(session.rows.reference(entityName: "Attachment", key: 1))
      let mapping = session.context.mapping
      let index = try #require(mapping.entity(named: "Attachment")?.toOne("post")?.index)
      try session.rows.update(reference, set: [index: .null])
      try body(session, post, record)
    }
    try await phone.quit()
  }

  private func isLinked(_ session: MirrorSession) throws -> Bool {
    let post = try #require(session.rows.reference(entityName: "Post", key: 1))
    let member = try #require(session.rows.reference(entityName: "Attachment", key: 1))
    return try session.rows.row(member)?.values.contains(.reference(post)) ?? false
  }

  @Test("A member that was read while its owner's deletion waited is linked if the owner returns")
  func returningOwner() async throws {
    try await withMember { session, post, member in
      let generation = try session.metadata.zone(MirrorNames.zone).generation
      try session.apply(records: [], deletedNames: [post.name], generation: generation)
      let owner = CloudRecord(
        name: post.name,
        recordType: post.recordType,
        tag: "again",
        fields: FieldBag(["CD_entityName": .string("Post"), "CD_title": .string("owner")])
      )
      try session.apply(records: [member], generation: generation)
      #expect(try !isLinked(session))
      // The scan after a new version of the model takes no waiting link for an edit.
      try session.requestScan()
      while try session.scan(limit: 100) {}
      #expect(try session.metadata.record(named: member.name)?.pending == .nothing)
      try session.apply(records: [owner], generation: generation)
      #expect(try isLinked(session))
      #expect(try session.metadata.linksParked(for: post.name).isEmpty)
    }
  }

  @Test("A parked link does not replace a destination that the app has set meanwhile")
  func editedLink() async throws {
    try await withMember { session, post, member in
      let generation = try session.metadata.zone(MirrorNames.zone).generation
      let reference = try #require(session.rows.reference(entityName: "Attachment", key: 1))
      try session.apply(records: [], deletedNames: [post.name], generation: generation)
      try session.apply(records: [member], generation: generation)
      let mapping = session.context.mapping
      let layout = try #require(mapping.entity(named: "Post")).layout
      let index = try #require(mapping.entity(named: "Attachment")?.toOne("post")?.index)
      let values = [RowValue](repeating: .null, count: layout.rowWidth)
      let other = try session.rows.insert(layout, values: values)
      try session.rows.update(reference, set: [index: .reference(other)])
      try session.metadata.forgetGoneRecord(post.name)
      try session.linkWhatWaited(for: post.name)
      #expect(try session.rows.row(reference)?.values[index] == .reference(other))
    }
  }

  @Test("A deletion that was read before its zone went is not undone by sending the object again")
  func deletionBeforeLoss() async throws {
    try await withMember { session, _, member in
      let generation = try session.metadata.zone(MirrorNames.zone).generation
      try session.apply(records: [], deletedNames: [member.name], generation: generation)
      try session.forgetZone()
      #expect(try session.metadata.record(named: member.name) == nil)
      #expect(try session.metadata.goneRecords(limit: 10).isEmpty)
      let posts = try session.rows.references(entityName: "Post", after: 0, limit: 10)
      #expect(posts.count == 1)
    }
  }

  @Test("A link that is removed while it waits for its object is not set when that arrives")
  func removedWhileWaiting() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    try phone.mirror.write(MirrorAuthor.importing) { session in
      let generation = try session.metadata.zone(MirrorNames.zone).generation
      func apply(_ entity: String, _ name: String, tag: String, _ fields: [String: String]) throws {
        var values = fields.mapValues(MirrorValue.string)
        values["CD_entityName"] = .string(entity)
        let record = CloudRecord(
          name: name,
          recordType: "CD_\(entity)",
          tag: tag,
          fields: FieldBag(values)
        )
        try session.apply(records: [record], generation: generation)
      }
      try apply("Attachment", "M", tag: "1", ["CD_name": "a", "CD_post": "O"])
      try apply("Attachment", "M", tag: "2", ["CD_name": "a"])
      try apply("Post", "O", tag: "3", ["CD_title": "owner"])
      let member = try #require(try session.metadata.record(named: "M"))
      #expect(member.pending == .nothing)
      let index = try #require(
        session.context.mapping.entity(named: "Attachment")?.toOne("post")?.index
      )
      let reference = try #require(session.rows.reference(entityName: "Attachment", key: 1))
      #expect(try session.rows.row(reference)?.values[index].isNull == true)
    }
    try await phone.quit()
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
