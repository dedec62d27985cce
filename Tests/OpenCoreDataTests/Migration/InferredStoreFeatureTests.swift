import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Lightweight migration of constraints, indexes, files, history and metadata")
struct InferredStoreFeatureTests {
  private typealias Parts = ModelParts

  @Test("A new uniqueness constraint is enforced, or fails the migration if the data violate it")
  func uniqueness() throws {
    let bench = try MigrationBench()
    let before = MigrationBench.model(
      Parts.entity("Post", [Parts.text("slug"), Parts.text("title")])
    )
    try bench.open(before) { context in
      for title in ["a", "b"] { _ = context.insert("Post", ["slug": "same", "title": title]) }
    }
    let untouched = try bench.dump()
    let bad = Parts.entity("Post", [Parts.text("slug"), Parts.text("title")])
    bad.uniquenessConstraints = [["slug"]]
    let error = try #require(bench.refusal(MigrationBench.model(bad)))
    #expect(error.code == NSMigrationError)
    let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError
    #expect(cause?.code == NSMigrationConstraintViolationError)
    try #expect(bench.dump() == untouched)
    let good = Parts.entity("Post", [Parts.text("slug"), Parts.text("title")])
    good.uniquenessConstraints = [["title"]]
    try bench.open(MigrationBench.model(good)) { context in
      _ = context.insert("Post", ["title": "a"])
      #expect(throws: (any Error).self) { try context.save() }
      context.rollback()
    }
  }

  @Test("Indexes are created, kept and dropped with the model")
  func indexes() throws {
    func make(_ names: [String], _ modifier: String) -> NSManagedObjectModel {
      let post = Parts.entity("Post", [Parts.text("title"), Parts.text("slug")])
      post.versionHashModifier = modifier
      post.indexes = names.map { name in
        NSFetchIndexDescription(
          name: "by_\(name)",
          elements: [
            NSFetchIndexElementDescription(
              property: post.properties.first { $0.name == name } ?? post.properties[0],
              collationType: .binary
            )
          ]
        )
      }
      return MigrationBench.model(post)
    }
    let bench = try MigrationBench()
    func present() throws -> [String] {
      try bench.connect().query(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'Z_Post%' ORDER BY name"
      ) { $0.text(0) }
    }
    try bench.open(make(["title"], "1")) { _ in }
    try #expect(present() == ["Z_Post_by_title"])
    try bench.open(make(["title", "slug"], "2")) { _ in }
    try #expect(present() == ["Z_Post_by_slug", "Z_Post_by_title"])
    try bench.open(make(["slug"], "3")) { _ in }
    try #expect(present() == ["Z_Post_by_slug"])
  }

  @Test("Derived attributes are computed for existing rows, and updated from then on")
  func derived() throws {
    let bench = try MigrationBench()
    let (list, item) = (
      Parts.entity("List", [Parts.text("name")]), Parts.entity("Item", [Parts.number("n")])
    )
    Parts.relate(list, "items", toMany: true, item, "list")
    try bench.open(MigrationBench.model(list, item)) { context in
      let items = [1, 2, 3].map { context.insert("Item", ["n": $0]) }
      _ = context.insert("List", ["name": "Été", "items": NSSet(array: items)])
    }
    let list2 = Parts.entity(
      "List",
      [
        Parts.text("name"), Parts.derived("plain", .stringAttributeType, "canonical:(name)"),
        Parts.derived("count", .integer64AttributeType, "items.@count"),
        Parts.derived("sum", .integer64AttributeType, "items.n.@sum"),
      ]
    )
    let item2 = Parts.entity(
      "Item",
      [Parts.number("n"), Parts.derived("owner", .stringAttributeType, "list.name")]
    )
    Parts.relate(list2, "items", toMany: true, item2, "list")
    try bench.open(MigrationBench.model(list2, item2)) { context in
      let list = try #require(try context.all("List").first)
      #expect(list.value(forKey: "plain") as? String == "ete")
      #expect((list.value(forKey: "count") as? NSNumber)?.intValue == 3)
      #expect((list.value(forKey: "sum") as? NSNumber)?.intValue == 6)
      try #expect(context.all("Item").allSatisfy { $0.value(forKey: "owner") as? String == "Été" })
      _ = context.insert("Item", ["n": 4, "list": list])
      try context.save()
      context.refresh(list, mergeChanges: false)
      #expect((list.value(forKey: "count") as? NSNumber)?.intValue == 4)
    }
  }

  @Test("External storage can be turned on and off without losing a byte")
  func externalStorage() throws {
    func make(_ isExternal: Bool) -> NSManagedObjectModel {
      MigrationBench.model(
        Parts.entity(
          "Photo",
          [
            Parts.attribute("data", .binaryDataAttributeType) {
              $0.allowsExternalBinaryDataStorage = isExternal
            }
          ]
        )
      )
    }
    let bench = try MigrationBench()
    let values = [Data([1, 2, 0]), Data([2]), Data(repeating: 7, count: 200_000), Data()]
    try bench.open(make(false)) { context in
      for value in values { _ = context.insert("Photo", ["data": value]) }
    }
    func check(_ context: NSManagedObjectContext) throws {
      let found = try context.all("Photo").compactMap { $0.value(forKey: "data") as? Data }
      #expect(Set(found) == Set(values))
    }
    let folder = bench.folder.file(".Store_SUPPORT/_EXTERNAL_DATA")
    func files() -> Int {
      ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).count
    }
    try bench.open(make(true)) { try check($0) }
    #expect(files() == 1)
    try bench.open(make(false)) { try check($0) }
    #expect(files() == 0)
  }

  @Test("A transient attribute becomes persistent, with its default")
  func transient() throws {
    let bench = try MigrationBench()
    try bench.open(
      MigrationBench.model(
        Parts.entity("P", [Parts.text("a"), Parts.text("t") { $0.isTransient = true }])
      )
    ) { _ = $0.insert("P", ["a": "1", "t": "lost"]) }
    try bench.open(
      MigrationBench.model(
        Parts.entity("P", [Parts.text("a"), Parts.text("t") { $0.defaultValue = "d" }])
      )
    ) { context in
      try #expect(context.all("P").first?.value(forKey: "t") as? String == "d")
    }
  }

  @Test("History refers to the same objects and properties after everything was renumbered")
  func history() throws {
    let options: [AnyHashable: Any] = MigrationBench.lightweight.merging(
      [NSPersistentHistoryTrackingKey: true as NSNumber]
    ) { first, _ in first }
    let bench = try MigrationBench()
    let post = Parts.entity(
      "Post",
      [
        Parts.text("title"), Parts.text("zone"),
        Parts.text("uid") { $0.preservesValueInHistoryOnDeletion = true },
      ]
    )
    try bench.open(MigrationBench.model(post, Parts.entity("Zebra")), options) { context in
      let post = context.insert("Post", ["title": "a", "uid": "1"])
      let gone = context.insert("Post", ["title": "b", "uid": "2"])
      _ = context.insert("Zebra")
      try context.save()
      post.setValue("z", forKey: "zone")
      try context.save()
      context.delete(gone)
      try context.save()
    }
    let post2 = Parts.entity(
      "Post",
      [
        Parts.text("author"), Parts.text("name", former: "title"), Parts.text("zone"),
        Parts.text("uid") { $0.preservesValueInHistoryOnDeletion = true },
        Parts.text("aid") { $0.preservesValueInHistoryOnDeletion = true },
      ]
    )
    try bench.open(MigrationBench.model(Parts.entity("Author"), post2), options) { context in
      let request = NSPersistentHistoryChangeRequest.fetchHistory(after: Date.distantPast)
      let result = try context.execute(request) as? NSPersistentHistoryResult
      let transactions = try #require(result?.result as? [NSPersistentHistoryTransaction])
      let changes = transactions.flatMap { $0.changes ?? [] }
      #expect(changes.count == 4)
      #expect(changes.allSatisfy { $0.changedObjectID.entity.name == "Post" })
      let update = try #require(changes.first { $0.changeType == .update })
      #expect(update.updatedProperties?.map(\.name) == ["zone"])
      let deletion = try #require(changes.first { $0.changeType == .delete })
      #expect(deletion.tombstone?["uid"] as? String == "2")
    }
  }

  @Test("The app's metadata entries and the identifier are kept")
  func metadata() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("P", [Parts.text("a")]))) { context in
      let coordinator = try #require(context.persistentStoreCoordinator)
      let store = try #require(coordinator.persistentStores.first)
      var metadata = coordinator.metadata(for: store)
      metadata["mine"] = "kept"
      coordinator.setMetadata(metadata, for: store)
    }
    let before = try NSPersistentStoreCoordinator.metadataForPersistentStore(
      ofType: NSSQLiteStoreType,
      at: bench.url
    )
    let model = MigrationBench.model(Parts.entity("P", [Parts.text("a"), Parts.text("b")]))
    try bench.open(model) { _ in }
    let after = try NSPersistentStoreCoordinator.metadataForPersistentStore(
      ofType: NSSQLiteStoreType,
      at: bench.url
    )
    #expect(after["mine"] as? String == "kept")
    #expect(after[NSStoreUUIDKey] as? String == before[NSStoreUUIDKey] as? String)
    #expect(model.isConfiguration(withName: nil, compatibleWithStoreMetadata: after))
    #expect(after[NSPersistentStoreModelVersionChecksumKey] as? String == model.versionChecksum)
  }

  @Test("An inferred mapping names its entity mappings by their kind")
  func inferredMapping() throws {
    let mapping = try NSMappingModel.inferredMappingModel(
      forSourceModel: MigrationBench.model(
        Parts.entity("Same", [Parts.text("a")]),
        Parts.entity("Changed", [Parts.text("a")]),
        Parts.entity("Gone")
      ),
      destinationModel: MigrationBench.model(
        Parts.entity("Same", [Parts.text("a")]),
        Parts.entity("Changed", [Parts.text("b", former: "a")]),
        Parts.entity("New")
      )
    )
    let types = mapping.entityMappingsByName.mapValues(\.mappingType)
    #expect(
      types == [
        "IEM_Copy_Same": .copyEntityMappingType,
        "IEM_Transform_Changed": .transformEntityMappingType,
        "IEM_Add_New": .addEntityMappingType, "IEM_Remove_Gone": .removeEntityMappingType,
      ]
    )
    let changed = mapping.entityMappingsByName["IEM_Transform_Changed"]
    #expect(changed?.attributeMappings?.map(\.name) == ["b"])
    #expect(changed?.attributeMappings?.first?.valueExpression?.description == "$source.a")
  }

  @Test(
    "Files of large values are removed with their entity or attribute",
    arguments: [true, false]
  )
  func droppedFiles(dropsEntity: Bool) throws {
    let bench = try MigrationBench("cards.sqlite")
    func card(_ hasPicture: Bool) -> NSEntityDescription {
      let picture = Parts.attribute("picture", .binaryDataAttributeType)
      picture.allowsExternalBinaryDataStorage = true
      return Parts.entity(
        "Card",
        hasPicture ? [Parts.text("name"), picture] : [Parts.text("name")]
      )
    }
    let post = { Parts.entity("Post", [Parts.text("title")]) }
    try bench.open(MigrationBench.model(card(true), post())) { context in
      _ = context.insert("Card", ["picture": Data(repeating: 1, count: 200_000)])
    }
    let folder = bench.folder.file(".cards_SUPPORT/_EXTERNAL_DATA").path
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).count == 1)
    let after =
      dropsEntity ? MigrationBench.model(post()) : MigrationBench.model(card(false), post())
    try bench.open(after) { _ in }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
  }
}
