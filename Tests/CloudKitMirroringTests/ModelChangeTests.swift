import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("A new version of the model")
struct ModelChangeTests {
  /// Notes with pages and labels, in two versions: the second one renames an entity, an attribute and
  /// both ends of a many-to-many relationship, and adds an attribute with a default.
  private static func model(_ version: Int, hasLabels: Bool = true) -> NSManagedObjectModel {
    let isNew = version == 2
    let note = BlogModel.entity(
      isNew ? "Article" : "Note",
      [
        BlogModel.attribute(isNew ? "headline" : "title", .stringAttributeType) {
          if isNew { $0.renamingIdentifier = "title" }
        },
        BlogModel.attribute("text", .stringAttributeType),
      ]
    )
    let page = BlogModel.entity("Page", [BlogModel.attribute("number", .integer64AttributeType)])
    let label = BlogModel.entity("Label", [BlogModel.attribute("name", .stringAttributeType)])
    if isNew {
      note.renamingIdentifier = "Note"
      note.properties += [
        BlogModel.attribute("rating", .integer64AttributeType) {
          $0.defaultValue = 3
        }
      ]
    }
    BlogModel.relate(
      (note, "pages", true, .cascadeDeleteRule),
      (page, isNew ? "article" : "note", false, .nullifyDeleteRule)
    )
    if hasLabels {
      BlogModel.relate(
        (note, isNew ? "topics" : "labels", true, .nullifyDeleteRule),
        (label, isNew ? "articles" : "notes", true, .nullifyDeleteRule)
      )
    }
    if isNew {
      note.relationshipsByName["topics"]?.renamingIdentifier = "labels"
      label.relationshipsByName["articles"]?.renamingIdentifier = "notes"
      page.relationshipsByName["article"]?.renamingIdentifier = "note"
    }
    let model = NSManagedObjectModel()
    model.entities = [note, page, label]
    return model
  }

  /// The first version without notes, and so without the relationships to them.
  private static func modelWithoutNotes() -> NSManagedObjectModel {
    let model = NSManagedObjectModel()
    model.entities = [
      BlogModel.entity("Page", [BlogModel.attribute("number", .integer64AttributeType)]),
      BlogModel.entity("Label", [BlogModel.attribute("name", .stringAttributeType)]),
    ]
    return model
  }

  /// Posts of an author, in three versions: each renames the attribute and the to-one relationship.
  private static func renamed(_ version: Int) -> NSManagedObjectModel {
    let names = [("name", "writer"), ("title", "author"), ("heading", "creator")]
    let (attribute, toOne) = names[version - 1]
    let post = BlogModel.entity("Post", [BlogModel.attribute(attribute, .stringAttributeType)])
    let person = BlogModel.entity("Person", [BlogModel.attribute("name", .stringAttributeType)])
    BlogModel.relate(
      (post, toOne, false, .nullifyDeleteRule),
      (person, "posts", true, .nullifyDeleteRule)
    )
    if version > 1 {
      post.attributesByName[attribute]?.renamingIdentifier = names[version - 2].0
      post.relationshipsByName[toOne]?.renamingIdentifier = names[version - 2].1
    }
    let model = NSManagedObjectModel()
    model.entities = [post, person]
    return model
  }

  private func fill(_ device: TestDevice, count: Int = 3) throws {
    try device.save { context in
      let label = context.make("Label", ["name": "l"])
      for number in 0..<count {
        let note = context.make("Note", ["title": "note \(number)", "text": "t"])
        note.setValue(NSSet(object: label), forKey: "labels")
        context.make("Page", ["number": number]).setValue(note, forKey: "note")
      }
    }
  }

  private func counts(_ device: TestDevice, _ entities: String...) throws -> [Int] {
    try device.save { context in try entities.map { try context.all($0).count } }
  }

  private func values(_ device: TestDevice, _ entity: String, _ key: String) throws -> [String] {
    try device.save { context in
      try context.all(entity).map { $0.value(forKey: key) as? String ?? "nil" }.sorted()
    }
  }

  @Test(
    "Renamed entities and properties lose no object, link or value in either version of the app"
  )
  func renames() async throws {
    let world = try await World(model: Self.model(1))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    try fill(old)
    try await world.settle(old, pad)
    try await old.quit()
    let phone = try await world.device("phone", model: Self.model(2))
    try await world.settle(phone, pad, phone)
    #expect(try counts(phone, "Article", "Page", "Label") == [3, 3, 1])
    #expect(try counts(pad, "Note", "Page", "Label") == [3, 3, 1])
    let titles = ["note 0", "note 1", "note 2"]
    #expect(try values(phone, "Article", "headline") == titles)
    #expect(try values(pad, "Note", "title") == titles)
    try phone.save { context in
      let label = try #require(try context.all("Label").first)
      #expect((label.value(forKey: "articles") as? NSSet)?.count == 3)
      #expect(try context.all("Page").allSatisfy { $0.value(forKey: "article") != nil })
    }
    // No record was sent for the change, and a new device with the new model reads the old records.
    let fresh = try await world.device("fresh", model: Self.model(2))
    try await fresh.sync()
    #expect(try fresh.snapshot() == phone.snapshot())
    for device in [phone, pad, fresh] { try await device.quit() }
  }

  @Test("Values of an attribute that was not mirrored before are sent, and not emptied")
  func mirroredLater() async throws {
    func model(ignoring: Bool) -> NSManagedObjectModel {
      let note = BlogModel.entity(
        "Note",
        [
          BlogModel.attribute("title", .stringAttributeType),
          BlogModel.attribute("text", .stringAttributeType) {
            if ignoring { $0.userInfo = [MirrorNames.ignoredKey: true] }
          },
        ]
      )
      let model = NSManagedObjectModel()
      model.entities = [note]
      return model
    }
    let world = try await World(model: model(ignoring: true))
    let (old, pad) = (
      try await world.device("phone"), try await world.device("pad", model: model(ignoring: false))
    )
    try old.save { _ = $0.make("Note", ["title": "a", "text": "kept"]) }
    try await world.settle(old, pad)
    #expect(try values(pad, "Note", "text") == ["nil"])
    try pad.save { try $0.all("Note").first?.setValue("b", forKey: "title") }
    try await pad.sync()
    try await old.quit()
    let phone = try await world.device("phone", model: model(ignoring: false))
    try await world.settle(phone, pad)
    for device in [phone, pad] {
      #expect(try values(device, "Note", "title") == ["b"])
      #expect(try values(device, "Note", "text") == ["kept"])
      try await device.quit()
    }
  }

  @Test("Versions of an app with two names of an attribute exchange their edits of it")
  func sideBySide() async throws {
    let world = try await World(model: Self.model(1))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    try fill(old, count: 1)
    try await world.settle(old, pad)
    try await old.quit()
    let phone = try await world.device("phone", model: Self.model(2))
    try await world.settle(phone, pad)
    try phone.save { try $0.all("Article").first?.setValue("new", forKey: "headline") }
    try await world.settle(phone, pad)
    #expect(try values(pad, "Note", "title") == ["new"])
    try pad.save { try $0.all("Note").first?.setValue("old again", forKey: "title") }
    try await world.settle(pad, phone)
    #expect(try values(phone, "Article", "headline") == ["old again"])
    try phone.save { try $0.all("Article").first?.setValue(nil, forKey: "headline") }
    try await world.settle(phone, pad)
    #expect(try values(pad, "Note", "title") == ["nil"])
    #expect(try values(phone, "Article", "headline") == ["nil"])
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("An updated device takes what the former version edited last, and keeps the other value")
  func editedBeforeUpdate() async throws {
    let world = try await World(model: Self.model(1))
    var (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try fill(phone, count: 1)
    try await world.settle(phone, pad)
    var watch = try await world.device("watch", model: Self.model(2))
    try await watch.sync()
    try watch.save { try $0.all("Article").first?.setValue("by the newer", forKey: "headline") }
    try await watch.sync()
    try await watch.quit()
    try await pad.sync()
    try pad.save { try $0.all("Note").first?.setValue("edited since", forKey: "title") }
    try await world.settle(pad, phone)
    try await phone.quit()
    phone = try await world.device("phone", model: Self.model(2))
    try await phone.sync()
    #expect(try values(phone, "Article", "headline") == ["edited since"])
    let kept = try #require(phone.container.storeMirrors.first).read { try $0.recoveredEdits() }
    #expect(kept.map { $0.fields["CD_headline"] } == [.string("by the newer")])
    watch = try await world.device("watch", model: Self.model(2))
    try await world.settle(phone, watch)
    #expect(try values(watch, "Article", "headline") == ["edited since"])
    let fresh = try await world.device("fresh", model: Self.model(2))
    try await fresh.sync()
    #expect(try values(fresh, "Article", "headline") == ["edited since"])
    for device in [phone, pad, watch, fresh] { try await device.quit() }
  }

  @Test(
    "A record that a newer version sends again keeps its values on devices with the older one",
    arguments: [5, 900_000]
  )
  func formerFieldsSentAgain(length: Int) async throws {
    let world = try await World(model: Self.model(1))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    let title = String(repeating: "t", count: length)
    try old.save { context in _ = context.make("Note", ["title": title, "text": "t"]) }
    try await world.settle(old, pad)
    try await old.quit()
    let phone = try await world.device("phone", model: Self.model(2))
    try await world.settle(phone, pad)
    try await world.deleteZone()
    try await world.settle(phone, pad)
    #expect(try values(pad, "Note", "title") == [title])
    #expect(try values(phone, "Article", "headline") == [title])
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("A large value under a former name is sent again in a file, and its record is not refused")
  func largeFormerValue() async throws {
    let world = try await World(model: Self.renamed(1))
    let large = String(repeating: "a", count: 600_000)
    let old = try await world.device("phone")
    try old.save { _ = $0.make("Post", ["name": large]) }
    try await old.sync()
    try await old.quit()
    let phone = try await world.device("phone", model: Self.renamed(2))
    let pad = try await world.device("pad", model: Self.renamed(2))
    try await world.settle(phone, pad)
    try phone.save { try $0.all("Post").first?.setValue(large + "b", forKey: "title") }
    try await world.settle(phone, pad)
    #expect(try phone.container.mirroringStatus().first?.parked.isEmpty == true)
    #expect(try values(pad, "Post", "title") == [large + "b"])
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("Values and objects that a migration made are exported, and a new default is not an edit")
  func computedValues() async throws {
    let world = try await World(model: Self.model(1))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    try fill(old, count: 2)
    try await world.settle(old, pad)
    try await old.quit()
    // Like a migration, this leaves no history.
    try SQLiteConnection(path: old.storeURL.path).execute(
      """
      UPDATE ZNOTE SET ZTEXT = 'computed' WHERE ZTITLE = 'note 0';
      UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1 WHERE Z_NAME = 'Label';
      INSERT INTO ZLABEL (Z_PK, Z_ENT, Z_OPT, ZNAME)
        SELECT Z_MAX, Z_ENT, 1, 'made' FROM Z_PRIMARYKEY WHERE Z_NAME = 'Label';
      """
    )
    // Another device with the new version has already edited the new attribute.
    try await pad.quit()
    let newPad = try await world.device("pad", model: Self.model(2))
    try newPad.save { context in
      try context.first("Article", "headline", "note 1").setValue(5, forKey: "rating")
    }
    try await newPad.sync()
    let phone = try await world.device("phone", model: Self.model(2))
    try await world.settle(phone, newPad, phone)
    #expect(try values(newPad, "Article", "text") == ["computed", "t"])
    #expect(try values(newPad, "Label", "name") == ["l", "made"])
    for device in [phone, newPad] {
      let ratings = try device.save { context in
        try context.all("Article").map { $0.value(forKey: "rating") as? Int64 ?? 0 }.sorted()
      }
      #expect(ratings == [3, 5])
    }
    #expect(try phone.snapshot() == newPad.snapshot())
    for device in [phone, newPad] { try await device.quit() }
  }

  @Test("Edits that were not exported before a rename are exported after it")
  func pendingEdits() async throws {
    let world = try await World(model: Self.model(1))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    try fill(old, count: 1)
    try await world.settle(old, pad)
    old.faults.isOnline = false
    try old.save { try $0.all("Note").first?.setValue("offline", forKey: "title") }
    try await old.quit()
    let phone = try await world.device("phone", model: Self.model(2))
    try await world.settle(phone, pad)
    #expect(try values(phone, "Article", "headline") == ["offline"])
    #expect(try values(pad, "Note", "title") == ["offline"])
    for device in [phone, pad] { try await device.quit() }
  }

  @Test(
    "A creation whose reply is lost before the model changes loses no value, in either direction",
    arguments: [(1, 2), (2, 1)]
  )
  func creationWithoutReply(from: Int, to: Int) async throws {
    let world = try await World(model: Self.model(from))
    let old = try await world.device("phone")
    try await old.sync()
    old.faults.add(.loseReply, to: "records/modify", count: .max)
    let names = [("Note", "title"), ("Article", "headline")]
    func name(_ version: Int) -> (entity: String, attribute: String) { names[version - 1] }
    try old.save { _ = $0.make(name(from).entity, [name(from).attribute: "a", "text": "t"]) }
    await #expect(throws: (any Error).self) { try await old.container.syncNow() }
    #expect(try old.container.storeMirrors.first?.read { try $0.openBatch() } != nil)
    try await old.quit()
    let phone = try await world.device("phone", model: Self.model(to))
    try await world.settle(phone)
    #expect(try values(phone, name(to).entity, name(to).attribute) == ["a"])
    let pad = try await world.device("pad", model: Self.model(to))
    try await pad.sync()
    #expect(try values(pad, name(to).entity, name(to).attribute) == ["a"])
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("An entity that a new version drops loses none of its records on other devices")
  func droppedEntity() async throws {
    let world = try await World(model: Self.model(1))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    try fill(old)
    try await world.settle(old, pad)
    old.faults.isOnline = false
    try old.save { context in
      for note in try context.all("Note") { note.setValue("offline", forKey: "text") }
    }
    try await old.quit()
    let phone = try await world.device("phone", model: Self.modelWithoutNotes())
    try await world.settle(phone, pad, phone)
    #expect(try counts(pad, "Note", "Page", "Label") == [3, 3, 1])
    #expect(try values(pad, "Note", "title") == ["note 0", "note 1", "note 2"])
    try pad.save { context in
      let label = try #require(try context.all("Label").first)
      #expect((label.value(forKey: "notes") as? NSSet)?.count == 3)
    }
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("The objects and links of an entity return with the version that has it again")
  func returningEntity() async throws {
    let world = try await World(model: Self.model(1))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    try fill(old)
    try await world.settle(old, pad)
    try await old.quit()
    let without = try await world.device("phone", model: Self.modelWithoutNotes())
    try await without.sync()
    try await without.quit()
    let phone = try await world.device("phone", model: Self.model(1))
    try await world.settle(phone, pad, phone)
    #expect(try counts(pad, "Note", "Page", "Label") == [3, 3, 1])
    #expect(try counts(phone, "Note", "Page", "Label") == [3, 3, 1])
    for device in [phone, pad] {
      try device.save { context in
        let label = try #require(try context.all("Label").first)
        #expect((label.value(forKey: "notes") as? NSSet)?.count == 3)
        #expect(try context.all("Page").allSatisfy { $0.value(forKey: "note") != nil })
      }
    }
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("The links of a many-to-many relationship return with the version that has it again")
  func returningRelationship() async throws {
    let world = try await World(model: Self.model(1))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    try fill(old)
    try await world.settle(old, pad)
    try await old.quit()
    let without = try await world.device("phone", model: Self.model(1, hasLabels: false))
    try await without.sync()
    try await without.quit()
    let phone = try await world.device("phone", model: Self.model(1))
    try await world.settle(phone, pad, phone)
    for device in [phone, pad] {
      try device.save { context in
        let label = try #require(try context.all("Label").first)
        #expect((label.value(forKey: "notes") as? NSSet)?.count == 3)
      }
      try await device.quit()
    }
  }

  @Test("A property that is renamed twice keeps its value on all devices, including new ones")
  func renamedTwice() async throws {
    let world = try await World(model: Self.renamed(1))
    var (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try phone.save { context in
      let person = context.make("Person", ["name": "Ada"])
      for number in 0..<3 {
        context.make("Post", ["name": "post \(number)"]).setValue(person, forKey: "writer")
      }
    }
    try await world.settle(phone, pad)
    for version in 2...3 {
      try await phone.quit()
      try await pad.quit()
      phone = try await world.device("phone", model: Self.renamed(version))
      pad = try await world.device("pad", model: Self.renamed(version))
      try await world.settle(phone, pad)
    }
    let fresh = try await world.device("fresh", model: Self.renamed(3))
    try await fresh.sync()
    for device in [phone, pad, fresh] {
      #expect(try values(device, "Post", "heading") == ["post 0", "post 1", "post 2"])
      try device.save { context in
        let posts = try context.all("Post")
        #expect(posts.allSatisfy { $0.value(forKey: "creator") != nil })
      }
      try await device.quit()
    }
  }

  @Test(
    "A sweep stops above its floor and its share, and continues at each of them",
    arguments: [(100, 100, true), (101, 100, false), (150, 300, true), (151, 300, false)]
  )
  func sweepGuard(missing: Int, known: Int, isAllowed: Bool) {
    #expect(SweepGuard(floor: 100, share: 0.5).allows(missing, of: known) == isAllowed)
  }
}
