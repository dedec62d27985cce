import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Lightweight migration")
struct InferredMigrationTests {
  private typealias Parts = ModelParts

  private func text(
    _ name: String,
    former: String? = nil,
    _ change: (NSAttributeDescription) -> Void = { _ in }
  ) -> NSAttributeDescription {
    Parts.attribute(name, .stringAttributeType) {
      if let former { $0.renamingIdentifier = former }
      change($0)
    }
  }

  private func number(
    _ name: String,
    _ change: (NSAttributeDescription) -> Void = { _ in }
  ) -> NSAttributeDescription {
    Parts.attribute(name, .integer64AttributeType, change)
  }

  @Test("Without the options a store of another version is refused with code 134100")
  func refusedWithoutOptions() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("Post", [text("title")])), [:]) { _ in }
    let newer = MigrationBench.model(Parts.entity("Post", [text("title"), text("body")]))
    #expect(bench.refusal(newer, [:])?.code == NSPersistentStoreIncompatibleVersionHashError)
  }

  @Test("A new attribute gets its default in every row, and identifiers stay the same")
  func addAttribute() throws {
    let bench = try MigrationBench()
    let before = MigrationBench.model(Parts.entity("Post", [text("title")]))
    let identifiers = try bench.open(before) { context in
      let posts = ["a", "b", "c"].map { context.insert("Post", ["title": $0]) }
      try context.save()
      return Set(posts.map { $0.objectID.uriRepresentation() })
    }
    let after = MigrationBench.model(
      Parts.entity(
        "Post",
        [
          text("title"), number("stars") { $0.defaultValue = 3 }, text("note"),
          Parts.attribute("seen", .booleanAttributeType) {
            $0.isOptional = false
            $0.defaultValue = false
          },
        ]
      )
    )
    try bench.open(after) { context in
      let posts = try context.all("Post", by: "title")
      #expect(posts.map { $0.value(forKey: "title") as? String } == ["a", "b", "c"])
      #expect(posts.allSatisfy { ($0.value(forKey: "stars") as? NSNumber)?.intValue == 3 })
      #expect(posts.allSatisfy { ($0.value(forKey: "seen") as? NSNumber)?.boolValue == false })
      #expect(posts.allSatisfy { $0.value(forKey: "note") == nil })
      #expect(Set(posts.map { $0.objectID.uriRepresentation() }) == identifiers)
    }
    // The store is the new model's: it opens without a migration.
    try bench.open(after, [:]) { _ in }
  }

  @Test("A removed attribute's column is gone, and a later one of its name starts empty")
  func removeAttribute() throws {
    let bench = try MigrationBench()
    let both = MigrationBench.model(Parts.entity("Post", [text("title"), text("secret")]))
    try bench.open(both) { _ = $0.insert("Post", ["title": "a", "secret": "s"]) }
    try bench.open(MigrationBench.model(Parts.entity("Post", [text("title")]))) { context in
      try #expect(context.all("Post").first?.value(forKey: "title") as? String == "a")
    }
    try #expect(!bench.dump().contains { $0.contains("text(\"s\")") })
    let again = MigrationBench.model(Parts.entity("Post", [text("title"), text("secret")]))
    try bench.open(again) { context in
      try #expect(context.all("Post").first?.value(forKey: "secret") == nil)
    }
  }

  @Test("An optional attribute becomes required with its default where it was nil")
  func requireWithDefault() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("Post", [text("title")]))) { context in
      _ = context.insert("Post", ["title": "a"])
      _ = context.insert("Post")
    }
    let after = MigrationBench.model(
      Parts.entity(
        "Post",
        [
          text("title") {
            $0.isOptional = false
            $0.defaultValue = "it's untitled"
          }
        ]
      )
    )
    try bench.open(after) { context in
      let titles = try context.all("Post", by: "title").map { $0.value(forKey: "title") as? String }
      #expect(titles == ["a", "it's untitled"])
    }
  }

  @Test("A required attribute without a value stops the migration and leaves the store as it was")
  func missingValue() throws {
    let bench = try MigrationBench()
    let before = MigrationBench.model(Parts.entity("Post", [text("title")]))
    try bench.open(before) { _ = $0.insert("Post", ["title": "a"]) }
    let untouched = try bench.dump()
    let after = MigrationBench.model(
      Parts.entity("Post", [text("title"), text("body") { $0.isOptional = false }])
    )
    let error = try #require(bench.refusal(after))
    #expect(error.domain == NSCocoaErrorDomain)
    #expect(error.code == NSMigrationError)
    #expect(
      error.userInfo["reason"] as? String == "Cannot migrate store in-place: "
        + "Validation error missing attribute values on mandatory destination attribute"
    )
    let cause = try #require(error.userInfo[NSUnderlyingErrorKey] as? NSError)
    #expect(cause.userInfo["entity"] as? String == "Post")
    #expect(cause.userInfo["attribute"] as? String == "body")
    try #expect(bench.dump() == untouched)
    try bench.open(before, [:]) { try #expect($0.all("Post").count == 1) }
  }

  @Test("Another attribute type is refused, naming entity and property, with the store untouched")
  func attributeType() throws {
    let bench = try MigrationBench()
    let before = MigrationBench.model(Parts.entity("Post", [text("stars")]))
    try bench.open(before) { _ = $0.insert("Post", ["stars": "5"]) }
    let untouched = try bench.dump()
    let after = MigrationBench.model(Parts.entity("Post", [number("stars")]))
    let error = try #require(bench.refusal(after))
    #expect(error.code == NSMigrationMissingMappingModelError)
    #expect(
      error.userInfo["reason"] as? String
        == "Can't find or automatically infer mapping model for migration"
    )
    let cause = try #require(error.userInfo[NSUnderlyingErrorKey] as? NSError)
    #expect(cause.code == NSInferredMappingModelError)
    #expect(cause.userInfo["entity"] as? String == "Post")
    #expect(cause.userInfo["property"] as? String == "stars")
    try #expect(bench.dump() == untouched)
    #expect(throws: (any Error).self) {
      try NSMappingModel.inferredMappingModel(forSourceModel: before, destinationModel: after)
    }
  }

  @Test("Without the option to infer, and without a mapping model, the error is 134140")
  func noInference() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("Post", [text("title")]))) { _ in }
    let after = MigrationBench.model(Parts.entity("Post", [text("title"), text("body")]))
    let error = bench.refusal(after, [NSMigratePersistentStoresAutomaticallyOption: true])
    #expect(error?.code == NSMigrationMissingMappingModelError)
  }

  @Test("A store whose model nobody knows is refused with code 134130")
  func missingSource() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("Post", [text("title")]))) { _ in }
    try bench.connect().execute("DROP TABLE Z_MODELCACHE")
    let after = MigrationBench.model(Parts.entity("Post", [text("title"), text("body")]))
    #expect(bench.refusal(after)?.code == NSMigrationMissingSourceModelError)
  }

  @Test("Renames by renaming identifier are followed, over several versions at once too")
  func renames() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("Post", [text("title")]))) { context in
      _ = context.insert("Post", ["title": "a"])
    }
    let third = Parts.entity("Story", [text("headline", former: "title"), text("title")])
    third.renamingIdentifier = "Post"
    try bench.open(MigrationBench.model(third)) { context in
      let story = try #require(try context.all("Story").first)
      #expect(story.value(forKey: "headline") as? String == "a")
      #expect(story.value(forKey: "title") == nil)
      #expect(story.objectID.uriRepresentation().lastPathComponent == "p1")
    }
    let fourth = Parts.entity("Tale", [text("name", former: "headline"), text("title")])
    fourth.renamingIdentifier = "Story"
    try bench.open(MigrationBench.model(fourth)) { context in
      try #expect(context.all("Tale").first?.value(forKey: "name") as? String == "a")
    }
  }

  @Test("Two attributes that swap their names swap their values")
  func swap() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("P", [text("a"), text("b")]))) { context in
      _ = context.insert("P", ["a": "1", "b": "2"])
    }
    let after = Parts.entity("P", [text("a", former: "b"), text("b", former: "a")])
    // The hashes are equal, so a modifier is what tells the versions apart.
    after.versionHashModifier = "swapped"
    try bench.open(MigrationBench.model(after)) { context in
      let object = try #require(try context.all("P").first)
      #expect(object.value(forKey: "a") as? String == "2")
      #expect(object.value(forKey: "b") as? String == "1")
    }
  }

  @Test("Entities that come and go renumber all others, and links follow")
  func entities() throws {
    let bench = try MigrationBench()
    func make(_ extra: [NSEntityDescription], without: Bool = false) -> NSManagedObjectModel {
      let post = Parts.entity("Post", [text("title")])
      let tag = Parts.entity("Tag", [text("name")])
      Parts.relate(post, "tags", toMany: true, tag, "posts", toMany: true)
      let model = NSManagedObjectModel()
      model.entities = extra + [post, tag]
      return model
    }
    try bench.open(make([Parts.entity("Zebra", [text("name")])])) { context in
      let tags = ["x", "y"].map { context.insert("Tag", ["name": $0]) }
      for title in ["a", "b"] {
        _ = context.insert("Post", ["title": title, "tags": NSSet(array: tags)])
      }
      _ = context.insert("Zebra", ["name": "gone"])
    }
    try bench.open(make([Parts.entity("Author", [text("name")]), Parts.entity("Book")])) {
      context in
      let posts = try context.all("Post", by: "title")
      #expect(posts.map { $0.value(forKey: "title") as? String } == ["a", "b"])
      #expect(posts.allSatisfy { ($0.value(forKey: "tags") as? NSSet)?.count == 2 })
      try #expect(context.all("Author").isEmpty)
      let author = context.insert("Author", ["name": "Ada"])
      try context.save()
      #expect(author.objectID.uriRepresentation().lastPathComponent == "p1")
    }
    let names = try bench.connect().query("SELECT Z_NAME FROM Z_PRIMARYKEY ORDER BY Z_ENT") {
      $0.text(0)
    }
    #expect(names == ["Author", "Book", "Post", "Tag"])
  }

  @Test("Relationships are added, removed and renamed")
  func relationships() throws {
    let bench = try MigrationBench()
    let (post, author) = (Parts.entity("Post", [text("title")]), Parts.entity("Author"))
    Parts.relate(post, "author", toMany: false, author, "posts", toMany: true)
    try bench.open(MigrationBench.model(post, author)) { context in
      let author = context.insert("Author")
      _ = context.insert("Post", ["title": "a", "author": author])
      _ = context.insert("Post", ["title": "b", "author": author])
    }
    let (post2, author2) = (Parts.entity("Post", [text("title")]), Parts.entity("Author"))
    let writer = Parts.relate(post2, "writer", toMany: false, author2, "texts", toMany: true)
    writer.renamingIdentifier = "author"
    writer.inverseRelationship?.renamingIdentifier = "posts"
    Parts.relate(post2, "next", toMany: false, post2, "previous")
    try bench.open(MigrationBench.model(post2, author2)) { context in
      let author = try #require(try context.all("Author").first)
      #expect((author.value(forKey: "texts") as? NSSet)?.count == 2)
      try #expect(context.all("Post").allSatisfy { $0.value(forKey: "writer") != nil })
      try #expect(context.all("Post").allSatisfy { $0.value(forKey: "next") == nil })
    }
    try bench.open(
      MigrationBench.model(Parts.entity("Post", [text("title")]), Parts.entity("Author"))
    ) { try #expect($0.all("Post").count == 2) }
  }

  @Test("A to-one becomes a to-many, with and without a to-many at the other end")
  func toOneToMany() throws {
    let bench = try MigrationBench()
    let (post, tag) = (Parts.entity("Post", [text("title")]), Parts.entity("Tag", [text("name")]))
    Parts.relate(post, "tag", toMany: false, tag, "posts", toMany: true)
    Parts.relate(post, "cover", toMany: false, tag, "covered")
    try bench.open(MigrationBench.model(post, tag)) { context in
      let tags = ["x", "y"].map { context.insert("Tag", ["name": $0]) }
      _ = context.insert("Post", ["title": "a", "tag": tags[0], "cover": tags[1]])
      _ = context.insert("Post", ["title": "b", "tag": tags[0]])
    }
    let (post2, tag2) = (Parts.entity("Post", [text("title")]), Parts.entity("Tag", [text("name")]))
    Parts.relate(post2, "tags", toMany: true, tag2, "posts", toMany: true)
      .renamingIdentifier = "tag"
    Parts.relate(post2, "covers", toMany: true, tag2, "covered").renamingIdentifier = "cover"
    try bench.open(MigrationBench.model(post2, tag2)) { context in
      let posts = try context.all("Post", by: "title")
      #expect(posts.map { ($0.value(forKey: "tags") as? NSSet)?.count } == [1, 1])
      #expect(posts.map { ($0.value(forKey: "covers") as? NSSet)?.count } == [1, 0])
      let tag = try #require(try context.all("Tag", by: "name").first)
      #expect((tag.value(forKey: "posts") as? NSSet)?.count == 2)
    }
  }

  @Test("A to-many becomes ordered and back, many-to-many too")
  func ordered() throws {
    func make(ordered: Bool) -> NSManagedObjectModel {
      let (list, item) = (Parts.entity("List"), Parts.entity("Item", [text("name")]))
      Parts.relate(list, "items", toMany: true, ordered: ordered, item, "list")
      Parts.relate(list, "shared", toMany: true, ordered: ordered, item, "lists", toMany: true)
      return MigrationBench.model(list, item)
    }
    let bench = try MigrationBench()
    try bench.open(make(ordered: false)) { context in
      let items = ["a", "b", "c"].map { context.insert("Item", ["name": $0]) }
      _ = context.insert("List", ["items": NSSet(array: items), "shared": NSSet(array: items)])
    }
    try bench.open(make(ordered: true)) { context in
      let list = try #require(try context.all("List").first)
      let items = try #require(list.value(forKey: "items") as? NSOrderedSet)
      let shared = try #require(list.value(forKey: "shared") as? NSOrderedSet)
      #expect(items.count == 3)
      #expect(shared.count == 3)
      let reversed = NSOrderedSet(array: items.array.reversed())
      list.setValue(reversed, forKey: "items")
      list.setValue(reversed, forKey: "shared")
    }
    // A version between keeps the order.
    let kept = make(ordered: true)
    kept.entities[0].properties.append(text("title"))
    try bench.open(kept) { context in
      let list = try #require(try context.all("List").first)
      let expected = (list.value(forKey: "items") as? NSOrderedSet)?.array as? [NSManagedObject]
      let shared = (list.value(forKey: "shared") as? NSOrderedSet)?.array as? [NSManagedObject]
      #expect(expected == shared)
    }
    try bench.open(make(ordered: false)) { context in
      let list = try #require(try context.all("List").first)
      #expect((list.value(forKey: "items") as? NSSet)?.count == 3)
      #expect((list.value(forKey: "shared") as? NSSet)?.count == 3)
    }
  }

  @Test("A to-many cannot become a to-one")
  func toManyToOne() throws {
    let (post, tag) = (Parts.entity("Post"), Parts.entity("Tag"))
    Parts.relate(post, "tags", toMany: true, tag, "post")
    let (post2, tag2) = (Parts.entity("Post"), Parts.entity("Tag"))
    Parts.relate(post2, "tags", toMany: false, tag2, "post")
    #expect {
      try NSMappingModel.inferredMappingModel(
        forSourceModel: MigrationBench.model(post, tag),
        destinationModel: MigrationBench.model(post2, tag2)
      )
    } throws: { error in
      let error = error as NSError
      return error.code == NSInferredMappingModelError
        && error.userInfo["property"] as? String == "tags"
    }
  }

  @Test("Properties move up to a new parent and down to its children")
  func hierarchy() throws {
    let bench = try MigrationBench()
    let owner = Parts.entity("Owner")
    let animal = Parts.entity("Animal", [text("name")])
    let cat = Parts.entity("Cat", parent: animal, [text("fur"), number("lives")])
    let dog = Parts.entity("Dog", parent: animal, [text("fur")])
    Parts.relate(owner, "pet", toMany: false, animal, "owner")
    try bench.open(MigrationBench.model(owner, animal, cat, dog)) { context in
      let cat = context.insert("Cat", ["name": "Tom", "fur": "grey", "lives": 9])
      _ = context.insert("Dog", ["name": "Rex", "fur": "brown"])
      _ = context.insert("Owner", ["pet": cat])
    }
    // fur moves up, name moves down to the cats alone, and a level comes between.
    let owner2 = Parts.entity("Owner")
    let animal2 = Parts.entity("Animal", [text("fur")])
    animal2.isAbstract = true
    let mammal = Parts.entity("Mammal", parent: animal2)
    let cat2 = Parts.entity("Cat", parent: mammal, [text("name"), number("lives")])
    let dog2 = Parts.entity("Dog", parent: mammal)
    Parts.relate(owner2, "pet", toMany: false, animal2, "owner")
    try bench.open(MigrationBench.model(owner2, animal2, mammal, cat2, dog2)) { context in
      let animals = try context.all("Animal", by: "fur")
      #expect(animals.map { $0.entity.name } == ["Dog", "Cat"])
      #expect(animals.map { $0.value(forKey: "fur") as? String } == ["brown", "grey"])
      #expect(animals[1].value(forKey: "name") as? String == "Tom")
      #expect((animals[1].value(forKey: "lives") as? NSNumber)?.intValue == 9)
      let owner = try #require(try context.all("Owner").first)
      #expect((owner.value(forKey: "pet") as? NSManagedObject)?.entity.name == "Cat")
    }
    // The dogs go, and what led to them; the cats leave the hierarchy.
    let owner3 = Parts.entity("Owner")
    let cat3 = Parts.entity("Cat", [text("name"), text("fur")])
    Parts.relate(owner3, "pet", toMany: false, cat3, "owner")
    try bench.open(MigrationBench.model(owner3, cat3)) { context in
      try #expect(context.all("Cat").map { $0.value(forKey: "fur") as? String } == ["grey"])
      let owner = try #require(try context.all("Owner").first)
      #expect((owner.value(forKey: "pet") as? NSManagedObject)?.entity.name == "Cat")
    }
  }

  @Test("Two hierarchies cannot become one")
  func mergedHierarchies() throws {
    let parent = Parts.entity("Parent")
    let entities = [
      parent, Parts.entity("A", parent: parent), Parts.entity("B", parent: parent),
    ]
    let after = NSManagedObjectModel()
    after.entities = entities
    #expect {
      try NSMappingModel.inferredMappingModel(
        forSourceModel: MigrationBench.model(Parts.entity("A"), Parts.entity("B")),
        destinationModel: after
      )
    } throws: { ($0 as NSError).code == NSInferredMappingModelError }
  }

  @Test("A new uniqueness constraint holds, or stops the migration where the data break it")
  func uniqueness() throws {
    let bench = try MigrationBench()
    let before = MigrationBench.model(Parts.entity("Post", [text("slug"), text("title")]))
    try bench.open(before) { context in
      for title in ["a", "b"] { _ = context.insert("Post", ["slug": "same", "title": title]) }
    }
    let untouched = try bench.dump()
    let bad = Parts.entity("Post", [text("slug"), text("title")])
    bad.uniquenessConstraints = [["slug"]]
    let error = try #require(bench.refusal(MigrationBench.model(bad)))
    #expect(error.code == NSMigrationError)
    let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError
    #expect(cause?.code == NSMigrationConstraintViolationError)
    try #expect(bench.dump() == untouched)
    let good = Parts.entity("Post", [text("slug"), text("title")])
    good.uniquenessConstraints = [["title"]]
    try bench.open(MigrationBench.model(good)) { context in
      _ = context.insert("Post", ["title": "a"])
      #expect(throws: (any Error).self) { try context.save() }
      context.rollback()
    }
  }

  @Test("Indexes are made, kept and dropped with the model")
  func indexes() throws {
    func make(_ names: [String], _ modifier: String) -> NSManagedObjectModel {
      let post = Parts.entity("Post", [text("title"), text("slug")])
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

  @Test("Derived attributes are computed for the rows that are there, and kept from then on")
  func derived() throws {
    let bench = try MigrationBench()
    let (list, item) = (Parts.entity("List", [text("name")]), Parts.entity("Item", [number("n")]))
    Parts.relate(list, "items", toMany: true, item, "list")
    try bench.open(MigrationBench.model(list, item)) { context in
      let items = [1, 2, 3].map { context.insert("Item", ["n": $0]) }
      _ = context.insert("List", ["name": "Été", "items": NSSet(array: items)])
    }
    let list2 = Parts.entity(
      "List",
      [
        text("name"), Parts.derived("plain", .stringAttributeType, "canonical:(name)"),
        Parts.derived("count", .integer64AttributeType, "items.@count"),
        Parts.derived("sum", .integer64AttributeType, "items.n.@sum"),
      ]
    )
    let item2 = Parts.entity(
      "Item",
      [number("n"), Parts.derived("owner", .stringAttributeType, "list.name")]
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

  @Test("External storage is turned on and off without losing a byte")
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
      MigrationBench.model(Parts.entity("P", [text("a"), text("t") { $0.isTransient = true }]))
    ) { _ = $0.insert("P", ["a": "1", "t": "lost"]) }
    try bench.open(
      MigrationBench.model(Parts.entity("P", [text("a"), text("t") { $0.defaultValue = "d" }]))
    ) { context in
      try #expect(context.all("P").first?.value(forKey: "t") as? String == "d")
    }
  }

  @Test("History keeps telling of the same objects and properties after everything was renumbered")
  func history() throws {
    let options: [AnyHashable: Any] = MigrationBench.lightweight.merging(
      [NSPersistentHistoryTrackingKey: true as NSNumber]
    ) { first, _ in first }
    let bench = try MigrationBench()
    let post = Parts.entity(
      "Post",
      [text("title"), text("zone"), text("uid") { $0.preservesValueInHistoryOnDeletion = true }]
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
        text("author"), text("name", former: "title"), text("zone"),
        text("uid") { $0.preservesValueInHistoryOnDeletion = true },
        text("aid") { $0.preservesValueInHistoryOnDeletion = true },
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

  @Test("What the app wrote into the metadata stays, and the identifier too")
  func metadata() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("P", [text("a")]))) { context in
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
    let model = MigrationBench.model(Parts.entity("P", [text("a"), text("b")]))
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

  @Test("An inferred mapping names its mappings by what they do")
  func inferredMapping() throws {
    let mapping = try NSMappingModel.inferredMappingModel(
      forSourceModel: MigrationBench.model(
        Parts.entity("Same", [text("a")]),
        Parts.entity("Changed", [text("a")]),
        Parts.entity("Gone")
      ),
      destinationModel: MigrationBench.model(
        Parts.entity("Same", [text("a")]),
        Parts.entity("Changed", [text("b", former: "a")]),
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
}
