import CloudKitMirroring
import CloudKitServer
import CloudKitTesting
import Foundation
import OpenCloudKit
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Migrations of mirrored stores")
struct MigrationTests {
  private typealias Blog = BlogModel

  private static func model(_ entities: NSEntityDescription...) -> NSManagedObjectModel {
    let model = NSManagedObjectModel()
    model.entities = entities
    return model
  }

  private static func text(_ name: String) -> NSAttributeDescription {
    Blog.attribute(name, .stringAttributeType)
  }

  @Test("An older version that still runs when a newer one migrates the store changes nothing more")
  func twoVersions() async throws {
    func note() -> NSEntityDescription { Blog.entity("Note", [Self.text("title")]) }
    let world = try await World(model: Self.model(note()))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    try old.save { context in
      for title in ["a", "b"] { _ = context.make("Note", ["title": title]) }
    }
    try await world.settle(old, pad)
    // The new entity takes the number of the notes.
    let album = Blog.entity("Album", [Self.text("title")])
    let newer = Self.model(album, note())
    try Self.open(old.storeURL, newer) { context in
      for title in ["one", "two"] { _ = context.make("Album", ["title": title]) }
      try context.save()
    }
    let error = #expect(throws: NSError.self) {
      try old.save { _ = $0.make("Note", ["title": "stale"]) }
    }
    #expect(error?.code == NSPersistentStoreIncompatibleVersionHashError)
    await #expect(throws: (any Error).self) { try await old.sync() }
    try await old.quit()
    let new = try await world.device("phone", model: newer)
    let fresh = try await world.device("fresh", model: newer)
    try await world.settle(new, pad, fresh)
    for device in [new, fresh] {
      #expect(try device.titles("Note") == ["a", "b"])
      #expect(try device.titles("Album") == ["one", "two"])
    }
    #expect(try pad.titles("Note") == ["a", "b"])
    for device in [new, fresh, pad] { try await device.quit() }
  }

  /// Articles with the name of their author, and in the second version with an author.
  private static func articles(_ version: Int) -> NSManagedObjectModel {
    let article = Blog.entity("Article", [text("title"), text("authorName")])
    guard version == 2 else { return model(article) }
    let author = Blog.entity("Author", [text("name")])
    Blog.relate(
      (article, "author", false, .nullifyDeleteRule),
      (author, "articles", true, .nullifyDeleteRule)
    )
    return model(article, author)
  }

  @Test("A link that a migration makes to an object that it makes reaches all devices")
  func linkToMadeObject() async throws {
    let world = try await World(model: Self.articles(1))
    let (old, oldPad) = (try await world.device("phone"), try await world.device("pad"))
    try old.save { context in
      for title in ["a", "b"] {
        _ = context.make("Article", ["title": title, "authorName": "Ada"])
      }
    }
    try await world.settle(old, oldPad)
    for device in [old, oldPad] { try await device.quit() }
    try Self.open(old.storeURL, Self.articles(2))
    // Like a migration by objects, this leaves no history.
    try SQLiteConnection(path: old.storeURL.path).execute(
      """
      UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Author';
      INSERT INTO ZAUTHOR (Z_PK, Z_ENT, Z_OPT, ZNAME)
        SELECT 1, Z_ENT, 1, 'Ada' FROM Z_PRIMARYKEY WHERE Z_NAME = 'Author';
      UPDATE ZARTICLE SET ZAUTHOR = 1;
      """
    )
    let phone = try await world.device("phone", model: Self.articles(2))
    let pad = try await world.device("pad", model: Self.articles(2))
    try await world.settle(phone, pad, phone)
    for device in [phone, pad] {
      #expect(try authors(device) == ["Ada", "Ada"])
      #expect(
        try device.save { try $0.all("Author").map { $0.value(forKey: "name") as? String } } == [
          "Ada"
        ]
      )
    }
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("A link to a new object whose history was deleted before it was read reaches all devices")
  func linkInDeletedHistory() async throws {
    let world = try await World(model: Self.articles(2))
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try phone.save { _ = $0.make("Article", ["title": "a"]) }
    try await world.settle(phone, pad)
    try await phone.quit()
    try Self.open(phone.storeURL, Self.articles(2)) { context in
      let author = context.make("Author", ["name": "Ada"])
      try context.first("Article", "title", "a").setValue(author, forKey: "author")
      try context.save()
      try context.execute(
        NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
      )
    }
    try phone.launch()
    try pad.save { try $0.first("Article", "title", "a").setValue("Bo", forKey: "authorName") }
    try await world.settle(pad, phone, pad)
    for device in [phone, pad] { #expect(try authors(device) == ["Ada"]) }
    for device in [phone, pad] { try await device.quit() }
  }

  private func authors(_ device: TestDevice) throws -> [String] {
    try device.save { context in
      try context.all("Article").map { article in
        let author = article.value(forKey: "author") as? NSManagedObject
        return author?.value(forKey: "name") as? String ?? "nil"
      }
    }
  }

  /// Opens a store without mirroring, migrates it where necessary, and runs a body.
  private static func open(
    _ url: URL,
    _ model: NSManagedObjectModel,
    _ body: (NSManagedObjectContext) throws -> Void = { _ in }
  ) throws {
    let options: [AnyHashable: Any] = [
      NSPersistentHistoryTrackingKey: true,
      NSMigratePersistentStoresAutomaticallyOption: true,
      NSInferMappingModelAutomaticallyOption: true,
    ]
    try editStore(at: url, model, options: options, body)
  }

  /// Labels of notes; in the second version notes are called papers.
  private static func labels(_ note: String, renames: Bool = false) -> NSManagedObjectModel {
    let note = Blog.entity(note, [text("title")])
    if renames { note.renamingIdentifier = "Note" }
    let label = Blog.entity("Label", [text("title")])
    Blog.relate(
      (note, "labels", true, .nullifyDeleteRule),
      (label, "notes", true, .nullifyDeleteRule)
    )
    return model(note, label)
  }

  @Test(
    "A mapping model that renames an entity of a many-to-many relationship keeps links and exports",
    arguments: ["Paper", "Draft"]
  )
  func renamedByMapping(name: String) async throws {
    // Each record has a page of its own: the edge comes before its note, which is edited later.
    let world = try await World(model: Self.labels("Note"), limits: { $0.bytesPerPage = 100 })
    let (old, oldPad) = (try await world.device("phone"), try await world.device("pad"))
    try old.save { context in
      let label = context.make("Label", ["title": "l"])
      context.make("Note", ["title": "a"]).setValue(NSSet(object: label), forKey: "labels")
    }
    try await world.settle(old, oldPad)
    for device in [old, oldPad] { try await device.quit() }
    for device in [old, oldPad] {
      // The metadata of the edges keep the names in a migration by a mapping model, which needs no
      // renaming identifiers.
      func connection() throws -> SQLiteConnection {
        try SQLiteConnection(path: device.storeURL.path)
      }
      try connection().execute("CREATE TABLE FORMER AS SELECT * FROM WSMIRROR_EDGE")
      try Self.open(device.storeURL, Self.labels(name, renames: true))
      try connection().execute(
        "DELETE FROM WSMIRROR_EDGE; INSERT INTO WSMIRROR_EDGE SELECT * FROM FORMER; DROP TABLE FORMER"
      )
    }
    let phone = try await world.device("phone", model: Self.labels(name))
    let pad = try await world.device("pad", model: Self.labels(name))
    try await world.settle(phone, pad, phone)
    try phone.save { context in
      let label = context.make("Label", ["title": "m"])
      let note = try context.first(name, "title", "a")
      note.setValue("edited", forKey: "title")
      note.mutableSetValue(forKey: "labels").add(label)
    }
    try await world.settle(phone, pad)
    for device in [phone, pad] {
      try device.save { context in
        let note = try context.first(name, "title", "edited")
        let labels = note.value(forKey: "labels") as? Set<NSManagedObject> ?? []
        #expect(labels.map { $0.value(forKey: "title") as? String ?? "" }.sorted() == ["l", "m"])
      }
    }
    #expect(try phone.container.mirroringStatus().first?.pendingCount == 0)
    #expect(try phone.snapshot() == pad.snapshot())
    // A device without a former version reads the entity's new name in the records.
    let fresh = try await world.device("fresh", model: Self.labels(name))
    try await fresh.sync()
    #expect(try fresh.snapshot() == phone.snapshot())
    for device in [phone, pad, fresh] { try await device.quit() }
  }

  @Test(
    "An entry for recovery survives the renaming of its relationship, and keeps what has no property"
  )
  func recoveryAfterRenaming() async throws {
    func model(_ name: String) -> NSManagedObjectModel {
      let post = Blog.entity("Post", [Self.text("title")])
      let tag = Blog.entity("Tag", [Self.text("title")])
      Blog.relate(
        (post, name, true, .nullifyDeleteRule),
        (tag, "posts", true, .nullifyDeleteRule)
      )
      if name != "tags" { post.relationshipsByName[name]?.renamingIdentifier = "tags" }
      return Self.model(post, tag)
    }
    let world = try await World(model: model("tags"))
    let old = try await world.device("phone")
    try old.save { context in
      _ = context.make("Post", ["title": "post"])
      _ = context.make("Tag", ["title": "tag"])
    }
    try await old.sync()
    let names = try old.snapshot().mapValues { $0["CD_title"] }
    let post = try #require(names.first { $0.value == "string(\"post\")" }?.key)
    let tag = try #require(names.first { $0.value == "string(\"tag\")" }?.key)
    try #require(old.container.storeMirrors.first).write(MirrorAuthor.setup) { session in
      let unknown = FieldBag(["CD_former": .string("kept")])
      for fields in [FieldBag(["tags": .string(tag)]).adding(unknown), unknown] {
        try session.metadata.keep(
          RecoveredEdit(record: post, entityName: "Post", reason: "test", noted: 0, fields: fields)
        )
      }
    }
    try await old.quit()
    let phone = try await world.device("phone", model: model("labels"))
    let entries = try phone.container.recoveryEntries()
    #expect(entries.map(\.propertyNames) == [["labels"], []])
    let linked = try #require(entries.first)
    #expect((linked.value(forKey: "labels") as? Set<CKRecord.ID>)?.map(\.recordName) == [tag])
    try phone.container.restore(linked)
    let error = #expect(throws: NSError.self) {
      try phone.container.restore(try #require(entries.last))
    }
    #expect(error?.code == 134_490)
    let labels = try phone.save { context in
      (try context.first("Post", "title", "post").value(forKey: "labels") as? NSSet)?.count
    }
    #expect(labels == 1)
    let left = try #require(phone.container.storeMirrors.first).read { try $0.recoveredEdits() }
    #expect(left.map(\.fields.values) == Array(repeating: ["CD_former": .string("kept")], count: 2))
    try await phone.quit()
  }
}

extension FieldBag {
  fileprivate func adding(_ other: FieldBag) -> FieldBag {
    FieldBag(values.merging(other.values) { _, new in new })
  }
}
