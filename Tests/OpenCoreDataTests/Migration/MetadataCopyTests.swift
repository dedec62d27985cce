import Foundation
import Testing
import WatershedSQLite

@testable import OpenCoreData

@Suite("History and mirroring metadata in a migration")
struct MetadataCopyTests {
  private typealias Parts = ModelParts

  /// Creates tables like the mirroring's: objects by entity and key.
  private func addBooks(_ bench: MigrationBench) throws {
    try bench.connect().execute(
      """
      CREATE TABLE WSMIRROR_RECORD (ID INTEGER PRIMARY KEY, NAME TEXT, ENTITY TEXT, PK INTEGER);
      CREATE UNIQUE INDEX WSMIRROR_RECORD_OBJECT ON WSMIRROR_RECORD (ENTITY, PK);
      CREATE TABLE WSMIRROR_EDGE (ID INTEGER PRIMARY KEY, FIRSTENTITY TEXT, FIRSTRELATIONSHIP TEXT);
      CREATE TABLE ANSCKRECORDMETADATA (Z_PK INTEGER PRIMARY KEY, ZENTITYID INTEGER);
      INSERT INTO WSMIRROR_RECORD SELECT NULL, 'r-' || ZTITLE, 'Post', Z_PK FROM ZPOST;
      INSERT INTO WSMIRROR_EDGE VALUES (1, 'Post', 'tags');
      INSERT INTO ANSCKRECORDMETADATA VALUES (1, 1);
      """
    )
  }

  private func make(
    _ name: String,
    _ title: String,
    extra: [NSEntityDescription]
  )
    -> NSManagedObjectModel
  {
    let attribute = Parts.attribute(title, .stringAttributeType) {
      $0.renamingIdentifier = "title"
    }
    let post = Parts.entity(name, [attribute])
    post.renamingIdentifier = "Post"
    let tag = Parts.entity("Tag")
    Parts.relate(post, title == "title" ? "tags" : "labels", toMany: true, tag, "on", toMany: true)
      .renamingIdentifier = "tags"
    let model = NSManagedObjectModel()
    model.entities = extra + [post, tag]
    return model
  }

  private func filled() throws -> MigrationBench {
    let bench = try MigrationBench()
    try bench.open(make("Post", "title", extra: [])) { context in
      for title in ["a", "b", "c"] { _ = context.insert("Post", ["title": title]) }
      try context.save()
      // Makes a gap in the keys.
      let first = try #require(try context.all("Post", by: "title").first)
      context.delete(first)
    }
    try addBooks(bench)
    return bench
  }

  private func records(
    _ bench: MigrationBench,
    _ column: String,
    _ table: String
  ) throws
    -> [String]
  {
    try bench.connect().query(
      """
      SELECT NAME || ' ' || ENTITY || ' ' || \(column) FROM WSMIRROR_RECORD \
      JOIN \(table) ON Z_PK = PK ORDER BY 1
      """
    ) { $0.text(0) }
  }

  @Test("Mirroring metadata refer to the same objects after entities were renamed and renumbered")
  func inPlace() throws {
    let bench = try filled()
    try bench.open(make("Story", "name", extra: [Parts.entity("Author")])) { _ in }
    try #expect(records(bench, "ZNAME", "ZSTORY") == ["r-b Story b", "r-c Story c"])
    let connection = try bench.connect()
    #expect(
      try connection.query("SELECT FIRSTENTITY, FIRSTRELATIONSHIP FROM WSMIRROR_EDGE") {
        "\($0.text(0)).\($0.text(1))"
      } == ["Story.labels"]
    )
    #expect(
      try connection.scalar("SELECT ZENTITYID FROM ANSCKRECORDMETADATA") == .integer(2)
    )
  }

  @Test("A deletion that no mirror has read yet follows its entity to the name in a mapping model")
  func deletionOfRenamedEntity() throws {
    func model(_ name: String) -> NSManagedObjectModel {
      let model = NSManagedObjectModel()
      model.entities = [Parts.entity(name, [Parts.attribute("title", .stringAttributeType)])]
      return model
    }
    let (older, newer) = (model("Note"), model("Memo"))
    let bench = try MigrationBench()
    try bench.open(older, [NSPersistentHistoryTrackingKey: true as NSNumber]) { context in
      _ = context.insert("Note", ["title": "only"])
      try context.save()
      context.delete(try #require(try context.all("Note").first))
    }
    let entity = NSEntityMapping()
    entity.name = "NoteToMemo"
    entity.mappingType = .customEntityMappingType
    entity.sourceEntityName = "Note"
    entity.destinationEntityName = "Memo"
    let mapping = NSMappingModel()
    mapping.entityMappings = [entity]
    let file = try StoreFile.inspect(bench.url, busyTimeout: 1)
    let copy = bench.url.deletingLastPathComponent().appendingPathComponent("copy.sqlite")
    try NSPersistentStoreCoordinator(managedObjectModel: newer).addPersistentStore(
      type: .sqlite,
      at: copy
    )
    try MetadataCopy(
      from: bench.url,
      to: copy,
      keys: [],
      mapping: mapping,
      source: StoreSchema.resolved(model: older, configuration: nil, against: file.tables),
      destination: StoreSchema.new(model: newer, configuration: nil)
    )
    .carry(identifier: file.identifier, metadata: file.metadata)
    let connection = try SQLiteConnection(path: copy.path, mode: .readOnly)
    #expect(
      try connection.scalar("SELECT COUNT(*) FROM ACHANGE WHERE ZCHANGETYPE = 2") == .integer(1)
    )
  }

  @Test("A mapping model keeps the preserved values of deletions, and what an update has changed")
  func tombstones() throws {
    func preserved(_ name: String, former: String? = nil) -> NSAttributeDescription {
      Parts.text(name, former: former) { $0.preservesValueInHistoryOnDeletion = true }
    }
    let older = MigrationBench.model(
      Parts.entity("Post", [preserved("name"), preserved("uid"), Parts.text("zone")])
    )
    let newer = MigrationBench.model(
      Parts.entity(
        "Post",
        [preserved("aid"), preserved("uid"), preserved("title"), Parts.text("area")]
      )
    )
    let options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true as NSNumber]
    let bench = try MigrationBench()
    try bench.open(older, options) { context in
      let gone = context.insert("Post", ["name": "n", "uid": "2"])
      let post = context.insert("Post", ["name": "m", "uid": "1"])
      try context.save()
      post.setValue("z", forKey: "zone")
      context.delete(gone)
    }
    let entity = NSEntityMapping()
    entity.name = "PostToPost"
    entity.mappingType = .customEntityMappingType
    entity.sourceEntityName = "Post"
    entity.destinationEntityName = "Post"
    entity.attributeMappings = [
      MigrationBench.property("title", "$source.name"),
      MigrationBench.property("area", "$source.zone"),
      MigrationBench.property("uid", "$source.uid"),
    ]
    let mapping = NSMappingModel()
    mapping.entityMappings = [entity]
    try MappedStoreMigration(
      source: older,
      mapping: mapping,
      migration: StoreMigration(
        model: newer,
        configuration: nil,
        url: bench.url,
        options: options,
        effects: .live
      )
    )
    .run()
    try bench.open(newer, options) { context in
      let request = NSPersistentHistoryChangeRequest.fetchHistory(after: Date.distantPast)
      let result = try context.execute(request) as? NSPersistentHistoryResult
      let transactions = try #require(result?.result as? [NSPersistentHistoryTransaction])
      let changes = transactions.flatMap { $0.changes ?? [] }
      let deletion = try #require(changes.first { $0.changeType == .delete })
      #expect(deletion.tombstone as? [String: String] == ["uid": "2", "title": "n"])
      let update = try #require(changes.first { $0.changeType == .update })
      #expect(update.updatedProperties?.map(\.name) == ["area"])
    }
  }

  @Test(
    "A mapping model beside the model migrates the store in place, with history and metadata",
    .enabled(if: Corpus.isPresent, "the corpus is not here: see WATERSHED_SHARED")
  )
  func mapped() throws {
    let models = try #require(Corpus.folder).appendingPathComponent("models")
    let scratch = try ScratchFolder()
    let package = "jessesquires__JSQCoreDataKit__ExampleModel.xcdatamodeld"
    let family = scratch.file("ExampleModel.xcdatamodeld")
    try FileManager.default.copyItem(at: models.appendingPathComponent(package), to: family)
    try FileManager.default.copyItem(
      at: models.appendingPathComponent(
        "_mapping/jessesquires__JSQCoreDataKit__Version1_to_Version2.xcmappingmodel"
      ),
      to: scratch.file("Version1_to_Version2.xcmappingmodel")
    )
    let older = try ModelFile.load(
      contentsOf: family.appendingPathComponent("Version 1.xcdatamodel")
    )
    let newer = try ModelFile.load(
      contentsOf: family.appendingPathComponent("Version 2.xcdatamodel")
    )
    let mapping = try #require(
      NSMappingModel(from: nil, forSourceModel: older, destinationModel: newer)
    )
    let first = try #require(mapping.entityMappings.first { $0.sourceEntityName != nil })
    let entity = try #require(first.sourceEntityName)
    let bench = try MigrationBench()
    var options = MigrationBench.lightweight
    options[NSPersistentHistoryTrackingKey] = true as NSNumber
    try bench.open(older, options) { context in
      for number in 0..<3 {
        let object = context.insert(entity)
        for (name, attribute) in object.entity.attributesByName where !attribute.isOptional {
          if attribute.attributeType == .stringAttributeType {
            object.setValue("v\(number)", forKey: name)
          } else if attribute.attributeType == .dateAttributeType {
            object.setValue(Date(timeIntervalSinceReferenceDate: 1), forKey: name)
          }
        }
      }
      try context.save()
      let objects = try context.all(entity)
      context.delete(objects[0])
    }
    let table = "Z" + entity.uppercased()
    try bench.connect().execute(
      """
      CREATE TABLE WSMIRROR_RECORD (ID INTEGER PRIMARY KEY, NAME TEXT, ENTITY TEXT, PK INTEGER);
      CREATE UNIQUE INDEX WSMIRROR_RECORD_OBJECT ON WSMIRROR_RECORD (ENTITY, PK);
      INSERT INTO WSMIRROR_RECORD SELECT NULL, 'r' || Z_PK, '\(entity)', Z_PK FROM \(table);
      INSERT INTO WSMIRROR_RECORD SELECT NULL, 'gone', '\(entity)', ZENTITYPK FROM ACHANGE \
      WHERE ZCHANGETYPE = 2;
      """
    )
    let identifier =
      try NSPersistentStoreCoordinator.metadataForPersistentStore(
        ofType: NSSQLiteStoreType,
        at: bench.url
      )[NSStoreUUIDKey] as? String
    try bench.open(newer, options) { context in
      let store = try #require(context.persistentStoreCoordinator?.persistentStores.first)
      #expect(store.identifier == identifier)
      let request = NSPersistentHistoryChangeRequest.fetchHistory(after: Date.distantPast)
      let result = try context.execute(request) as? NSPersistentHistoryResult
      let transactions = try #require(result?.result as? [NSPersistentHistoryTransaction])
      // Two inserts and the deletion; the migration itself is not recorded.
      #expect(transactions.count == 2)
      #expect(transactions.flatMap { $0.changes ?? [] }.count == 3)
      let live = Set(
        try context.all(first.destinationEntityName ?? "").map {
          $0.objectID.uriRepresentation().lastPathComponent
        }
      )
      let booked = try bench.connect().query(
        "SELECT 'p' || PK FROM WSMIRROR_RECORD WHERE NAME <> 'gone'"
      ) { $0.text(0) }
      #expect(Set(booked) == live)
      // The deletion's key belongs to no row, and the record of the deleted row is still found.
      let deletion = try #require(
        transactions.flatMap { $0.changes ?? [] }.first { $0.changeType == .delete }
      )
      let deleted = deletion.changedObjectID.uriRepresentation().lastPathComponent
      #expect(!live.contains(deleted))
      let gone = try bench.connect().query(
        "SELECT 'p' || PK FROM WSMIRROR_RECORD WHERE NAME = 'gone'"
      ) { $0.text(0) }
      #expect(gone == [deleted])
      // An object that is inserted later does not get that key.
      let added = (0..<3).map { _ in context.insert(first.destinationEntityName ?? "") }
      try context.obtainPermanentIDs(for: added)
      let keys = added.map { $0.objectID.uriRepresentation().lastPathComponent }
      #expect(!keys.contains(deleted))
      context.rollback()
    }
    let integrity = try bench.connect().scalar("PRAGMA integrity_check")
    #expect(integrity == .text("ok"))
  }

  @Test("Each row of the mirroring's tables finds its object's new key without visiting the others")
  func costOfKeys() throws {
    let connection = try SQLiteConnection(path: ":memory:")
    try connection.execute(MetadataCopy.keyTable)
    try connection.execute(
      """
      CREATE TABLE WSTABLE (ID INTEGER PRIMARY KEY, ENTITY TEXT NOT NULL, PK INTEGER);
      CREATE UNIQUE INDEX WSOBJECT ON WSTABLE (ENTITY, PK);
      """
    )
    let count: Int64 = 10
    for key in 1...count {
      try connection.run(
        "INSERT INTO temp.WSKEYS VALUES (1, 'Note', ?1, 2, 'Page', ?2, 0)",
        [.integer(key), .integer(count + 1 - key)]
      )
      try connection.run("INSERT INTO WSTABLE (ENTITY, PK) VALUES ('Note', ?)", [.integer(key)])
    }
    // The migration left its object out.
    try connection.run("INSERT INTO WSTABLE (ENTITY, PK) VALUES ('Note', ?)", [.integer(count + 1)])
    let moves = MetadataCopy.moves(of: "WSTABLE")
    let plan = connection.queryPlan(of: try #require(moves.first))
    #expect(plan.contains { $0.contains("SEARCH k") && $0.hasSuffix("(FNAME=? AND FPK=?)") })
    for sql in moves { try connection.execute(sql) }
    let rows = try connection.query("SELECT ENTITY, PK FROM WSTABLE ORDER BY ID") { row in
      (row.text(0), row.optionalInt64(1))
    }
    #expect(rows.map(\.0) == Array(repeating: "Page", count: Int(count)) + ["Note"])
    #expect(rows.map(\.1) == (1...count).reversed().map(Optional.some) + [nil])
  }
}
