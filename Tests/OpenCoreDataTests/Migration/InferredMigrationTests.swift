import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Lightweight migration")
struct InferredMigrationTests {
  private typealias Parts = ModelParts

  @Test("Without the options a store of another version is refused with code 134100")
  func refusedWithoutOptions() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("Post", [Parts.text("title")])), [:]) { _ in }
    let newer = MigrationBench.model(
      Parts.entity("Post", [Parts.text("title"), Parts.text("body")])
    )
    #expect(bench.refusal(newer, [:])?.code == NSPersistentStoreIncompatibleVersionHashError)
  }

  @Test("A new attribute gets its default in every row, and identifiers stay the same")
  func addAttribute() throws {
    let bench = try MigrationBench()
    let before = MigrationBench.model(Parts.entity("Post", [Parts.text("title")]))
    let identifiers = try bench.open(before) { context in
      let posts = ["a", "b", "c"].map { context.insert("Post", ["title": $0]) }
      try context.save()
      return Set(posts.map { $0.objectID.uriRepresentation() })
    }
    let after = MigrationBench.model(
      Parts.entity(
        "Post",
        [
          Parts.text("title"), Parts.number("stars") { $0.defaultValue = 3 }, Parts.text("note"),
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
    // The store has the new model: it opens without a migration.
    try bench.open(after, [:]) { _ in }
  }

  @Test("A removed attribute's column is dropped, and a later one of the same name starts empty")
  func removeAttribute() throws {
    let bench = try MigrationBench()
    let both = MigrationBench.model(
      Parts.entity("Post", [Parts.text("title"), Parts.text("secret")])
    )
    try bench.open(both) { _ = $0.insert("Post", ["title": "a", "secret": "s"]) }
    try bench.open(MigrationBench.model(Parts.entity("Post", [Parts.text("title")]))) { context in
      try #expect(context.all("Post").first?.value(forKey: "title") as? String == "a")
    }
    try #expect(!bench.dump().contains { $0.contains("Parts.text(\"s\")") })
    let again = MigrationBench.model(
      Parts.entity("Post", [Parts.text("title"), Parts.text("secret")])
    )
    try bench.open(again) { context in
      try #expect(context.all("Post").first?.value(forKey: "secret") == nil)
    }
  }

  @Test("An optional attribute that becomes required gets its default where it was nil")
  func requireWithDefault() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("Post", [Parts.text("title")]))) { context in
      _ = context.insert("Post", ["title": "a"])
      _ = context.insert("Post")
    }
    let after = MigrationBench.model(
      Parts.entity(
        "Post",
        [
          Parts.text("title") {
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

  @Test("A required attribute without a value fails the migration, and the store is unchanged")
  func missingValue() throws {
    let bench = try MigrationBench()
    let before = MigrationBench.model(Parts.entity("Post", [Parts.text("title")]))
    try bench.open(before) { _ = $0.insert("Post", ["title": "a"]) }
    let untouched = try bench.dump()
    let after = MigrationBench.model(
      Parts.entity("Post", [Parts.text("title"), Parts.text("body") { $0.isOptional = false }])
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

  @Test("Another attribute type is refused, with entity and property, and the store is unchanged")
  func attributeType() throws {
    let bench = try MigrationBench()
    let before = MigrationBench.model(Parts.entity("Post", [Parts.text("stars")]))
    try bench.open(before) { _ = $0.insert("Post", ["stars": "5"]) }
    let untouched = try bench.dump()
    let after = MigrationBench.model(Parts.entity("Post", [Parts.number("stars")]))
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
    try bench.open(MigrationBench.model(Parts.entity("Post", [Parts.text("title")]))) { _ in }
    let after = MigrationBench.model(
      Parts.entity("Post", [Parts.text("title"), Parts.text("body")])
    )
    let error = bench.refusal(after, [NSMigratePersistentStoresAutomaticallyOption: true])
    #expect(error?.code == NSMigrationMissingMappingModelError)
  }

  @Test("A store whose model is unknown is refused with code 134130")
  func missingSource() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("Post", [Parts.text("title")]))) { _ in }
    try bench.connect().execute("DROP TABLE Z_MODELCACHE")
    let after = MigrationBench.model(
      Parts.entity("Post", [Parts.text("title"), Parts.text("body")])
    )
    #expect(bench.refusal(after)?.code == NSMigrationMissingSourceModelError)
  }

  @Test("Renames by renaming identifier are followed, also over several versions at once")
  func renames() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("Post", [Parts.text("title")]))) { context in
      _ = context.insert("Post", ["title": "a"])
    }
    let third = Parts.entity(
      "Story",
      [Parts.text("headline", former: "title"), Parts.text("title")]
    )
    third.renamingIdentifier = "Post"
    try bench.open(MigrationBench.model(third)) { context in
      let story = try #require(try context.all("Story").first)
      #expect(story.value(forKey: "headline") as? String == "a")
      #expect(story.value(forKey: "title") == nil)
      #expect(story.objectID.uriRepresentation().lastPathComponent == "p1")
    }
    let fourth = Parts.entity(
      "Tale",
      [Parts.text("name", former: "headline"), Parts.text("title")]
    )
    fourth.renamingIdentifier = "Story"
    try bench.open(MigrationBench.model(fourth)) { context in
      try #expect(context.all("Tale").first?.value(forKey: "name") as? String == "a")
    }
  }

  @Test("Two attributes that swap their names swap their values")
  func swap() throws {
    let bench = try MigrationBench()
    try bench.open(MigrationBench.model(Parts.entity("P", [Parts.text("a"), Parts.text("b")]))) {
      context in
      _ = context.insert("P", ["a": "1", "b": "2"])
    }
    let after = Parts.entity("P", [Parts.text("a", former: "b"), Parts.text("b", former: "a")])
    // The hashes are equal, so a modifier distinguishes the versions.
    after.versionHashModifier = "swapped"
    try bench.open(MigrationBench.model(after)) { context in
      let object = try #require(try context.all("P").first)
      #expect(object.value(forKey: "a") as? String == "2")
      #expect(object.value(forKey: "b") as? String == "1")
    }
  }

  @Test("Added and removed entities renumber all others, and links follow")
  func entities() throws {
    let bench = try MigrationBench()
    func make(_ extra: [NSEntityDescription], without: Bool = false) -> NSManagedObjectModel {
      let post = Parts.entity("Post", [Parts.text("title")])
      let tag = Parts.entity("Tag", [Parts.text("name")])
      Parts.relate(post, "tags", toMany: true, tag, "posts", toMany: true)
      let model = NSManagedObjectModel()
      model.entities = extra + [post, tag]
      return model
    }
    try bench.open(make([Parts.entity("Zebra", [Parts.text("name")])])) { context in
      let tags = ["x", "y"].map { context.insert("Tag", ["name": $0]) }
      for title in ["a", "b"] {
        _ = context.insert("Post", ["title": title, "tags": NSSet(array: tags)])
      }
      _ = context.insert("Zebra", ["name": "gone"])
    }
    try bench.open(make([Parts.entity("Author", [Parts.text("name")]), Parts.entity("Book")])) {
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
}
