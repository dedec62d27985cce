import Foundation
import OpenCoreData
import Testing

/// Rows and relationships that contexts share through the store's cache.
@Suite("Rows and relationships shared between contexts")
struct SharedRowsTests {
  private let container: NSPersistentContainer

  init() throws {
    let author = NSEntityDescription()
    author.name = "Author"
    let book = NSEntityDescription()
    book.name = "Book"
    let genre = NSEntityDescription()
    genre.name = "Genre"
    func relationship(
      _ name: String,
      _ destination: NSEntityDescription,
      isToMany: Bool
    ) -> NSRelationshipDescription {
      let made = NSRelationshipDescription()
      made.name = name
      made.destinationEntity = destination
      made.maxCount = isToMany ? 0 : 1
      made.deleteRule = .nullifyDeleteRule
      made.isOptional = true
      return made
    }
    func name() -> NSAttributeDescription {
      let made = NSAttributeDescription()
      made.name = "name"
      made.attributeType = .stringAttributeType
      made.isOptional = true
      return made
    }
    let books = relationship("books", book, isToMany: true)
    let ofAuthor = relationship("author", author, isToMany: false)
    let genres = relationship("genres", genre, isToMany: true)
    let ofGenre = relationship("books", book, isToMany: true)
    books.inverseRelationship = ofAuthor
    ofAuthor.inverseRelationship = books
    genres.inverseRelationship = ofGenre
    ofGenre.inverseRelationship = genres
    author.properties = [name(), books]
    book.properties = [name(), ofAuthor, genres]
    genre.properties = [name(), ofGenre]
    let model = NSManagedObjectModel()
    model.entities = [author, book, genre]
    container = NSPersistentContainer(name: "Shared", managedObjectModel: model)
    let description = NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
  }

  /// Runs in a new context and saves.
  @discardableResult
  private func write<Result>(_ body: (NSManagedObjectContext) throws -> Result) throws -> Result {
    let context = container.newBackgroundContext()
    return try context.performAndWait {
      let result = try body(context)
      try context.save()
      return result
    }
  }

  /// The names of the members, read in a new context.
  private func names(_ id: NSManagedObjectID, _ key: String) -> [String] {
    let context = container.newBackgroundContext()
    return context.performAndWait {
      let members = context.object(with: id).value(forKey: key) as? Set<NSManagedObject> ?? []
      return members.compactMap { $0.value(forKey: "name") as? String }.sorted()
    }
  }

  private func insert(
    _ entity: String,
    _ name: String,
    _ context: NSManagedObjectContext
  ) -> NSManagedObject {
    let made = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
    made.setValue(name, forKey: "name")
    return made
  }

  @Test("A to-many is read again after any save that changes it")
  func toManyFollowsSaves() throws {
    let (author, first, genre) = try write { context in
      let author = insert("Author", "Ann", context)
      let book = insert("Book", "One", context)
      let genre = insert("Genre", "Rain", context)
      book.setValue(author, forKey: "author")
      book.mutableSetValue(forKey: "genres").add(genre)
      try context.save()
      return (author.objectID, book.objectID, genre.objectID)
    }
    #expect(names(author, "books") == ["One"])
    #expect(names(genre, "books") == ["One"])

    let second = try write { context in
      let book = insert("Book", "Two", context)
      book.setValue(context.object(with: author), forKey: "author")
      book.mutableSetValue(forKey: "genres").add(context.object(with: genre))
      try context.save()
      return book.objectID
    }
    #expect(names(author, "books") == ["One", "Two"])
    #expect(names(genre, "books") == ["One", "Two"])

    try write { $0.object(with: second).setValue("Zwei", forKey: "name") }
    #expect(names(author, "books") == ["One", "Zwei"])

    try write { $0.object(with: first).setValue(nil, forKey: "author") }
    #expect(names(author, "books") == ["Zwei"])

    try write { context in
      context.object(with: genre).mutableSetValue(forKey: "books")
        .remove(context.object(with: first))
    }
    #expect(names(genre, "books") == ["Zwei"])
    #expect(names(first, "genres") == [])

    try write { $0.delete($0.object(with: second)) }
    #expect(names(author, "books") == [])
    #expect(names(genre, "books") == [])
  }

  @Test("An unreferenced object is released immediately, and its row then gets another object")
  func objectsAreNotHeld() throws {
    let id = try write { context in
      let author = insert("Author", "Ann", context)
      try context.save()
      return author.objectID
    }
    let context = container.newBackgroundContext()
    context.performAndWait {
      weak let first = context.object(with: id)
      #expect(first == nil)
      #expect(context.registeredObject(for: id) == nil)
      let second = context.object(with: id)
      #expect(context.registeredObject(for: id) === second)
      #expect(context.registeredObjects == [second])
      #expect(second.value(forKey: "name") as? String == "Ann")
    }
  }

  @Test("Objects that other threads release are never returned again")
  func releasesElsewhere() async throws {
    let ids = try write { context in
      let made = (0..<200).map { insert("Author", "\($0)", context) }
      try context.save()
      return made.map(\.objectID)
    }
    let context = container.newBackgroundContext()
    for _ in 0..<50 {
      let held = Held(context.performAndWait { ids.map { context.object(with: $0) } })
      let release = Task.detached { held.release() }
      let names = context.performAndWait {
        ids.map { context.object(with: $0).value(forKey: "name") as? String }
      }
      await release.value
      #expect(names == ids.indices.map { "\($0)" })
    }
  }

  /// Objects passed to another thread, which only releases them.
  private final class Held: @unchecked Sendable {
    private var objects: [NSManagedObject]

    init(_ objects: [NSManagedObject]) {
      self.objects = objects
    }

    func release() {
      objects = []
    }
  }
}
