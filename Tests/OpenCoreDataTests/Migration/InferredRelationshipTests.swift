import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Lightweight migration of relationships and hierarchies")
struct InferredRelationshipTests {
  private typealias Parts = ModelParts

  @Test("Relationships are added, removed and renamed")
  func relationships() throws {
    let bench = try MigrationBench()
    let (post, author) = (Parts.entity("Post", [Parts.text("title")]), Parts.entity("Author"))
    Parts.relate(post, "author", toMany: false, author, "posts", toMany: true)
    try bench.open(MigrationBench.model(post, author)) { context in
      let author = context.insert("Author")
      _ = context.insert("Post", ["title": "a", "author": author])
      _ = context.insert("Post", ["title": "b", "author": author])
    }
    let (post2, author2) = (Parts.entity("Post", [Parts.text("title")]), Parts.entity("Author"))
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
      MigrationBench.model(Parts.entity("Post", [Parts.text("title")]), Parts.entity("Author"))
    ) { try #expect($0.all("Post").count == 2) }
  }

  @Test("A to-one becomes a to-many, with and without a to-many inverse")
  func toOneToMany() throws {
    let bench = try MigrationBench()
    let (post, tag) = (
      Parts.entity("Post", [Parts.text("title")]), Parts.entity("Tag", [Parts.text("name")])
    )
    Parts.relate(post, "tag", toMany: false, tag, "posts", toMany: true)
    Parts.relate(post, "cover", toMany: false, tag, "covered")
    try bench.open(MigrationBench.model(post, tag)) { context in
      let tags = ["x", "y"].map { context.insert("Tag", ["name": $0]) }
      _ = context.insert("Post", ["title": "a", "tag": tags[0], "cover": tags[1]])
      _ = context.insert("Post", ["title": "b", "tag": tags[0]])
    }
    let (post2, tag2) = (
      Parts.entity("Post", [Parts.text("title")]), Parts.entity("Tag", [Parts.text("name")])
    )
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

  @Test("A to-many becomes ordered and unordered again, also a many-to-many")
  func ordered() throws {
    func make(ordered: Bool) -> NSManagedObjectModel {
      let (list, item) = (Parts.entity("List"), Parts.entity("Item", [Parts.text("name")]))
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
    // An intermediate version keeps the order.
    let kept = make(ordered: true)
    kept.entities[0].properties.append(Parts.text("title"))
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
    let animal = Parts.entity("Animal", [Parts.text("name")])
    let cat = Parts.entity("Cat", parent: animal, [Parts.text("fur"), Parts.number("lives")])
    let dog = Parts.entity("Dog", parent: animal, [Parts.text("fur")])
    Parts.relate(owner, "pet", toMany: false, animal, "owner")
    try bench.open(MigrationBench.model(owner, animal, cat, dog)) { context in
      let cat = context.insert("Cat", ["name": "Tom", "fur": "grey", "lives": 9])
      _ = context.insert("Dog", ["name": "Rex", "fur": "brown"])
      _ = context.insert("Owner", ["pet": cat])
    }
    // fur moves up, name moves down to the cats alone, and a level is inserted between.
    let owner2 = Parts.entity("Owner")
    let animal2 = Parts.entity("Animal", [Parts.text("fur")])
    animal2.isAbstract = true
    let mammal = Parts.entity("Mammal", parent: animal2)
    let cat2 = Parts.entity("Cat", parent: mammal, [Parts.text("name"), Parts.number("lives")])
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
    // The dogs are removed, with the relationship to them; the cats leave the hierarchy.
    let owner3 = Parts.entity("Owner")
    let cat3 = Parts.entity("Cat", [Parts.text("name"), Parts.text("fur")])
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
}
