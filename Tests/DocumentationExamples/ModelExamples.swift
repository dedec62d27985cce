import CoreData
import Foundation
import Testing

@Suite("Examples: models in code")
struct ModelExamples {
  private func attribute(
    _ name: String,
    _ type: NSAttributeDescription.AttributeType
  ) -> NSAttributeDescription {
    let attribute = NSAttributeDescription()
    attribute.name = name
    attribute.type = type
    return attribute
  }

  private func entity(_ name: String, _ properties: [NSPropertyDescription]) -> NSEntityDescription
  {
    let entity = NSEntityDescription()
    entity.name = name
    entity.properties = properties
    return entity
  }

  private func context(_ entities: NSEntityDescription...) throws -> NSManagedObjectContext {
    let model = NSManagedObjectModel()
    model.entities = entities
    let container = NSPersistentContainer(name: "Blog", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container.newBackgroundContext()
  }

  @Test("An attribute has a type, a default value and a name in earlier versions")
  func attribute() throws {
    // example: NSAttributeDescription
    let rating = NSAttributeDescription()
    rating.name = "rating"
    rating.type = .integer16
    rating.isOptional = false
    rating.defaultValue = 3
    rating.renamingIdentifier = "stars"  // its name in the version before
    // end
    let context = try context(entity("Post", [rating]))
    context.performAndWait {
      let post = NSEntityDescription.insertNewObject(forEntityName: "Post", into: context)
      #expect(post.value(forKey: "rating") as? Int == 3)
    }
  }

  @Test("A derived attribute is computed by a save")
  func derived() throws {
    let title = attribute("title", .string)
    // example: NSDerivedAttributeDescription
    let sortTitle = NSDerivedAttributeDescription()
    sortTitle.name = "sortTitle"
    sortTitle.type = .string
    sortTitle.derivationExpression = NSExpression(format: "canonical:(title)")
    // end
    let context = try context(entity("Post", [title, sortTitle]))
    try context.performAndWait {
      let post = NSEntityDescription.insertNewObject(forEntityName: "Post", into: context)
      post.setValue("Éclair", forKey: "title")
      try context.save()
      context.refresh(post, mergeChanges: false)
      #expect(post.value(forKey: "sortTitle") as? String == "eclair")
    }
  }

  @Test("A composite attribute is set as a whole and read by part")
  func composite() throws {
    let latitude = attribute("latitude", .double)
    let longitude = attribute("longitude", .double)
    // example: NSCompositeAttributeDescription
    let place = NSCompositeAttributeDescription()
    place.name = "place"
    place.elements = [latitude, longitude]
    // A context sets it as a whole: post.setValue(["latitude": 48.2], forKey: "place")
    // A predicate reads a part: NSPredicate(format: "place.latitude > 48")
    // end
    let context = try context(entity("Post", [place]))
    try context.performAndWait {
      let post = NSEntityDescription.insertNewObject(forEntityName: "Post", into: context)
      post.setValue(["latitude": 48.2], forKey: "place")
      try context.save()
      let request = NSFetchRequest<NSManagedObject>(entityName: "Post")
      request.predicate = NSPredicate(format: "place.latitude > 48")
      #expect(try context.count(for: request) == 1)
    }
  }

  @Test("A fetched property is the result of a fetch with the object's values")
  func fetchedProperty() throws {
    let title = attribute("title", .string)
    let post = entity("Post", [title])
    // example: NSFetchedPropertyDescription
    let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "Post")
    request.predicate = NSPredicate(format: "title == $FETCH_SOURCE.title")
    let sameTitle = NSFetchedPropertyDescription()
    sameTitle.name = "sameTitle"
    sameTitle.fetchRequest = request
    // end
    request.entity = post
    post.properties = [title, sameTitle]
    let context = try context(post)
    try context.performAndWait {
      let posts = ["One", "One", "Two"].map { title in
        let post = NSEntityDescription.insertNewObject(forEntityName: "Post", into: context)
        post.setValue(title, forKey: "title")
        return post
      }
      try context.save()
      #expect((posts[0].value(forKey: "sameTitle") as? [NSManagedObject])?.count == 2)
    }
  }

  @Test("An index has elements in order and may have a condition")
  func fetchIndex() throws {
    let title = attribute("title", .string)
    let created = attribute("created", .date)
    let post = entity("Post", [title, created])
    // example: NSFetchIndexDescription
    let newest = NSFetchIndexElementDescription(property: created, collationType: .binary)
    newest.isAscending = false
    let index = NSFetchIndexDescription(name: "byCreated", elements: [newest])
    index.partialIndexPredicate = NSPredicate(format: "title != nil")
    post.indexes = [index]
    // end
    let context = try context(post)
    let count = try context.performAndWait {
      try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Post"))
    }
    #expect(count == 0)
    #expect(post.indexes.first?.elements.first?.propertyName == "created")
  }

  @Test("A transformable attribute is stored as its transformer's bytes")
  func transformer() throws {
    ValueTransformer.setValueTransformer(
      TagsTransformer(),
      forName: NSValueTransformerName("ExampleTags")
    )
    let tags = attribute("tags", .transformable)
    tags.valueTransformerName = "ExampleTags"
    let context = try context(entity("Post", [tags]))
    try context.performAndWait {
      let post = NSEntityDescription.insertNewObject(forEntityName: "Post", into: context)
      post.setValue(["home", "today"], forKey: "tags")
      try context.save()
      context.refresh(post, mergeChanges: false)
      #expect(post.value(forKey: "tags") as? [String] == ["home", "today"])
    }
  }
}

// example: ValueTransformer
final class TagsTransformer: ValueTransformer, @unchecked Sendable {
  override func transformedValue(_ value: Any?) -> Any? {
    (value as? [String]).map { Data($0.joined(separator: "\n").utf8) }
  }

  override func reverseTransformedValue(_ value: Any?) -> Any? {
    (value as? Data).map { String(decoding: $0, as: UTF8.self).components(separatedBy: "\n") }
  }
}
// end
