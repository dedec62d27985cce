import Foundation
import OpenCoreData
import Testing

@Suite("Models made from copies of descriptions")
struct CopiedDescriptionTests {
  private static func relationship(_ name: String, maxCount: Int) -> NSRelationshipDescription {
    let relationship = NSRelationshipDescription()
    relationship.name = name
    relationship.maxCount = maxCount
    return relationship
  }

  private static func entity(_ name: String) -> NSEntityDescription {
    let entity = NSEntityDescription()
    entity.name = name
    return entity
  }

  /// Shelves with books; the entities have copies of the relationships if these are copied.
  private static func library(
    originals: (NSRelationshipDescription, NSRelationshipDescription) -> [NSRelationshipDescription]
  ) -> NSManagedObjectModel {
    let shelf = entity("Shelf")
    let book = entity("Book")
    let books = relationship("books", maxCount: 0)
    let place = relationship("shelf", maxCount: 1)
    books.destinationEntity = book
    place.destinationEntity = shelf
    books.inverseRelationship = place
    place.inverseRelationship = books
    let properties = originals(books, place)
    shelf.properties = [properties[0]]
    book.properties = [properties[1]]
    let model = NSManagedObjectModel()
    model.entities = [shelf, book]
    return model
  }

  private static func copy(_ relationship: NSRelationshipDescription) -> NSRelationshipDescription?
  {
    relationship.copy() as? NSRelationshipDescription
  }

  private static func context(of model: NSManagedObjectModel) throws -> NSManagedObjectContext {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    try coordinator.addPersistentStore(
      ofType: NSInMemoryStoreType,
      configurationName: nil,
      at: nil
    )
    let context = NSManagedObjectContext(concurrencyType: .mainQueueConcurrencyType)
    context.persistentStoreCoordinator = coordinator
    return context
  }

  /// Puts a book on a shelf and reads the shelf's books.
  private static func expectInverses(in model: NSManagedObjectModel) throws {
    let shelf = try #require(model.entitiesByName["Shelf"])
    let book = try #require(model.entitiesByName["Book"])
    let books = try #require(shelf.relationshipsByName["books"])
    let place = try #require(book.relationshipsByName["shelf"])
    #expect(books.inverseRelationship === place)
    #expect(place.inverseRelationship === books)
    #expect(books.destinationEntity === book)
    let hashes = model.entityVersionHashesByName
    let context = try context(of: model)
    #expect(books.inverseRelationship === place)
    #expect(place.destinationEntity === shelf)
    #expect(model.entityVersionHashesByName == hashes)
    let first = NSEntityDescription.insertNewObject(forEntityName: "Shelf", into: context)
    let second = NSEntityDescription.insertNewObject(forEntityName: "Book", into: context)
    second.setValue(first, forKey: "shelf")
    #expect(first.value(forKey: "books") as? Set<NSManagedObject> == [second])
  }

  @Test("Copied relationships whose originals are gone are each other's inverses")
  func originalsAreGone() throws {
    let model = Self.library { books, place in [books, place].compactMap(Self.copy) }
    try Self.expectInverses(in: model)
    let plain = Self.library { [$0, $1] }
    #expect(model.entityVersionHashesByName == plain.entityVersionHashesByName)
  }

  @Test("Copied relationships whose originals are alive are each other's inverses")
  func originalsAreAlive() throws {
    var kept: [NSRelationshipDescription] = []
    let model = Self.library { books, place in
      kept = [books, place]
      return kept.compactMap(Self.copy)
    }
    try withExtendedLifetime(kept) { try Self.expectInverses(in: model) }
  }

  @Test("One copied relationship and one original are each other's inverses")
  func oneCopy() throws {
    try Self.expectInverses(
      in: Self.library { books, place in [books, Self.copy(place)].compactMap(\.self) }
    )
    try Self.expectInverses(
      in: Self.library { books, place in [Self.copy(books), place].compactMap(\.self) }
    )
  }

  @Test("A copied relationship keeps the inverse that its original had, not the one it has later")
  func reusedOriginal() throws {
    let model = Self.library { books, place in
      let copies = [books, place].compactMap(Self.copy)
      place.name = "drawer"
      books.inverseRelationship = nil
      return copies
    }
    try Self.expectInverses(in: model)
  }

  @Test("A relationship that is its own inverse is that in a copy too")
  func reflexive() throws {
    let person = Self.entity("Person")
    let friends = Self.relationship("friends", maxCount: 0)
    friends.destinationEntity = person
    friends.inverseRelationship = friends
    person.properties = [try #require(Self.copy(friends))]
    let model = NSManagedObjectModel()
    model.entities = [person]
    let copied = try #require(person.relationshipsByName["friends"])
    #expect(copied.inverseRelationship === copied)
  }

  @Test(
    "Copied entities lead to one another, in a new model and in their own",
    arguments: [true, false]
  )
  func copiedEntities(usesFirst: Bool) throws {
    let first = Self.library { [$0, $1] }
    if usesFirst { _ = try Self.context(of: first) }
    let model = NSManagedObjectModel()
    model.entities = first.entities.compactMap { $0.copy() as? NSEntityDescription }
    try Self.expectInverses(in: model)
    #expect(model.entityVersionHashesByName == first.entityVersionHashesByName)
    let own = Self.library { [$0, $1] }
    own.entities = own.entities.compactMap { $0.copy() as? NSEntityDescription }
    try Self.expectInverses(in: own)
  }

  @Test("The copy of a model made from copies has the same relationships")
  func copiedModel() throws {
    let model = Self.library { books, place in [books, place].compactMap(Self.copy) }
    try Self.expectInverses(in: try #require(model.copy() as? NSManagedObjectModel))
  }

  @Test("A copied entity without its destination is an error that names both")
  func missingDestination() throws {
    let first = Self.library { [$0, $1] }
    let model = NSManagedObjectModel()
    model.entities = first.entities.filter { $0.name == "Shelf" }
      .compactMap { $0.copy() as? NSEntityDescription }
    let error = #expect(throws: NSError.self) {
      try withExtendedLifetime(first) { try Self.context(of: model) }
    }
    let text = error?.localizedDescription ?? ""
    #expect(text.contains("'Shelf.books'") && text.contains("'Book'"))
  }
}
