import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Stores, options and configurations")
struct ConfigurationTests {
  private static func model() -> NSManagedObjectModel {
    let note = ModelParts.entity("Note", [ModelParts.attribute("text", .stringAttributeType)])
    let draft = ModelParts.entity("Draft", [ModelParts.attribute("text", .stringAttributeType)])
    let model = NSManagedObjectModel()
    model.entities = [note, draft]
    model.setEntities([note], forConfigurationName: "Cloud")
    model.setEntities([draft], forConfigurationName: "Local")
    return model
  }

  @Test("A store has the entities of its configuration, with their own numbers")
  func configurations() throws {
    let folder = try ScratchFolder()
    let model = Self.model()
    let cloud = try SQLiteStore(
      model: model,
      configuration: "Cloud",
      url: folder.file("cloud.sqlite")
    )
    let local = try SQLiteStore(
      model: model,
      configuration: "Local",
      url: folder.file("local.sqlite")
    )
    #expect(cloud.schema.entities.map(\.name) == ["Note"])
    #expect(local.schema.entities.map(\.number) == [1])
    #expect(cloud.configurationName == "Cloud")
    let draft = try #require(model.entitiesByName["Draft"])
    #expect(throws: NSError.self) { try cloud.number(of: draft) }
    local.close()
    #expect(throws: NSError.self) {
      try SQLiteStore(model: model, configuration: "Cloud", url: folder.file("local.sqlite"))
    }
    #expect(throws: NSError.self) {
      try SQLiteStore(model: model, configuration: "Nowhere", url: folder.file("new.sqlite"))
    }
  }

  @Test("The metadata of a new store have Core Data's entries")
  func metadata() throws {
    let folder = try ScratchFolder()
    let url = folder.file("notes.sqlite")
    let store = try SQLiteStore(model: Self.model(), url: url)
    let metadata = try SQLiteStore.metadata(at: url)
    #expect(metadata["NSStoreType"] as? String == "SQLite")
    #expect(metadata["NSStoreUUID"] as? String == store.identifier)
    #expect(metadata["_NSAutoVacuumLevel"] as? String == "2")
    #expect((metadata["NSStoreModelVersionHashesVersion"] as? NSNumber)?.intValue == 3)
    #expect(
      Self.model().isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata)
    )
    store.metadata["com.example.answer"] = 42
    store.close()
    let back = try SQLiteStore.metadata(at: url)
    #expect((back["com.example.answer"] as? NSNumber)?.intValue == 42)
    let plain = try SQLiteConnection(path: url.path, mode: .readOnly)
    #expect(try plain.scalar("PRAGMA page_size") == .integer(4096))
    #expect(try plain.scalar("PRAGMA auto_vacuum") == .integer(2))
    #expect(try plain.scalar("PRAGMA journal_mode") == .text("wal"))
  }

  @Test("Pragmas of the options are applied, except values that are no identifiers")
  func pragmas() throws {
    let folder = try ScratchFolder()
    let url = folder.file("notes.sqlite")
    let store = try SQLiteStore(
      model: Self.model(),
      url: url,
      options: [
        NSSQLitePragmasOption: ["journal_mode": "DELETE", "user_version": "1; DROP TABLE ZNOTE"]
      ]
    )
    store.close()
    let plain = try SQLiteConnection(path: url.path, mode: .readOnly)
    #expect(try plain.scalar("PRAGMA journal_mode") == .text("delete"))
    #expect(try plain.scalar("SELECT COUNT(*) FROM ZNOTE") == .integer(0))
  }

  @Test("Tables of other programs in the file are not changed")
  func foreignTables() throws {
    let folder = try ScratchFolder()
    let url = folder.file("notes.sqlite")
    try SQLiteStore(model: Self.model(), url: url).close()
    do {
      let connection = try SQLiteConnection(path: url.path)
      try connection.execute(
        """
        CREATE TABLE ANSCKEVENT (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER);
        INSERT INTO ANSCKEVENT VALUES (1, 17002, 1);
        INSERT INTO Z_PRIMARYKEY VALUES (17002, 'NSCKEvent', 0, 1);
        """
      )
    }
    let store = try SQLiteStore(
      model: Self.model(),
      url: url,
      options: [NSPersistentHistoryTrackingKey: true]
    )
    let note = try #require(store.schema.entity(named: "Note"))
    _ = try store.write(author: nil) { try $0.insert(note.layout, values: [.string("x")]) }
    store.close()
    let plain = try SQLiteConnection(path: url.path, mode: .readOnly)
    #expect(try plain.scalar("SELECT COUNT(*) FROM ANSCKEVENT") == .integer(1))
    #expect(
      try plain.scalar("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = 17002") == .integer(1)
    )
    #expect(try plain.scalar("SELECT COUNT(*) FROM ACHANGE") == .integer(1))
  }

  @Test(
    "History that was begun continues without the option, and refusing it opens the store read-only"
  )
  func historyOption() throws {
    let folder = try ScratchFolder()
    let url = folder.file("notes.sqlite")
    try SQLiteStore(
      model: Self.model(),
      url: url,
      options: [NSPersistentHistoryTrackingKey: true]
    ).close()
    let silent = try SQLiteStore(model: Self.model(), url: url)
    #expect(silent.keepsHistory && !silent.isReadOnly)
    silent.close()
    let refusing = try SQLiteStore(
      model: Self.model(),
      url: url,
      options: [NSPersistentHistoryTrackingKey: false]
    )
    #expect(refusing.isReadOnly)
  }

  @Test("A closed store throws an error")
  func closed() throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(model: Self.model(), url: folder.file("notes.sqlite"))
    let note = try #require(store.schema.entity(named: "Note"))
    store.close()
    store.close()
    #expect(throws: NSError.self) {
      try store.row(RowReference(entityNumber: note.number, key: 1)).found
    }
    #expect(throws: NSError.self) { try store.write(author: nil) { _ in } }
  }

  @Test("Dictionary fetches return properties, expressions and groups")
  func dictionaries() throws {
    let world = try SampleStore(options: [:])
    for (title, score) in [("a", 1), ("b", 2), ("b", 4), ("c", 8)] {
      _ = try world.insert("Post", ["title": .string(title), "score": .integer(Int64(score))])
    }
    let post = try world.table("Post").layout.entity
    let title = try #require(post.attributesByName["title"])
    let total = NSExpressionDescription()
    total.name = "total"
    total.expression = NSExpression(format: "sum:(score)")
    total.expressionResultType = .integer64AttributeType
    var request = RowFetch(
      entity: post,
      kind: .dictionaries(
        RowFetch.DictionaryShape(
          properties: [title, total],
          groupBy: [title],
          having: NSPredicate(format: "total > %@", 1)
        )
      )
    )
    request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
    guard case .dictionaries(let found) = try world.store.fetch(request) else { return }
    #expect(found.map { $0["title"] as? String } == ["b", "c"])
    #expect(found.map { ($0["total"] as? NSNumber)?.intValue } == [6, 8])
    request = RowFetch(entity: post, kind: .count)
    request.predicate = NSPredicate(format: "title IN %@", ["a", "b"])
    guard case .count(let count) = try world.store.fetch(request) else { return }
    #expect(count == 3)
    request.limit = 2
    guard case .count(let limited) = try world.store.fetch(request) else { return }
    #expect(limited == 2)
  }
}
