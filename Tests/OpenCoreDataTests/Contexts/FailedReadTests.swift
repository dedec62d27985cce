import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Reads that fail")
struct FailedReadTests {
  /// A reopened library, some of whose tables can be renamed for a while, so that reads of them
  /// fail.
  private struct World {
    let library: Library
    let container: NSPersistentContainer
    let context: NSManagedObjectContext

    init(_ fill: (NSManagedObjectContext) throws -> Void) throws {
      library = try Library()
      let setup = library.context()
      try setup.performAndWait {
        try fill(setup)
        try setup.save()
      }
      container = try library.reopened()
      // Without turns, each read sees the current file.
      context = NSManagedObjectContext(concurrencyType: .confinementConcurrencyType)
      context.persistentStoreCoordinator = container.persistentStoreCoordinator
    }

    private func connect() throws -> SQLiteConnection {
      let url = library.folder.appendingPathComponent("Library.sqlite")
      let connection = try SQLiteConnection(path: url.path, mode: .readWrite)
      try connection.execute("PRAGMA legacy_alter_table = ON")
      return connection
    }

    func without(_ table: String, _ body: () throws -> Void) throws {
      try connect().execute("ALTER TABLE \(table) RENAME TO \(table)_AWAY")
      defer {
        #expect(throws: Never.self) {
          try connect().execute("ALTER TABLE \(table)_AWAY RENAME TO \(table)")
        }
      }
      try body()
    }

    func first<T: NSManagedObject>(_ type: T.Type, _ name: String) throws -> T {
      let request = NSFetchRequest<NSManagedObjectID>(entityName: name)
      request.resultType = .managedObjectIDResultType
      let identifier = try #require(try context.fetch(request).first)
      return try #require(context.object(with: identifier) as? T)
    }

    func count(_ table: String) throws -> SQLiteValue? {
      try connect().scalar("SELECT COUNT(*) FROM \(table)")
    }
  }

  private static func fill(_ context: NSManagedObjectContext) throws {
    let reader = Reader(context: context)
    reader.name = "Ada"
    let book = Book(context: context)
    book.title = "Sums"
    book.loanedTo = reader
    for heading in ["One", "Two"] {
      let chapter = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      chapter.setValue(heading, forKey: "heading")
      chapter.setValue(book, forKey: "book")
    }
    let shelf = NSEntityDescription.insertNewObject(forEntityName: "Shelf", into: context)
    book.setValue(shelf, forKey: "shelf")
  }

  @Test("A fault that could not be read stays a fault, and the next save throws once")
  func fault() throws {
    let world = try World(Self.fill)
    let reader = try world.first(Reader.self, "Reader")
    try world.without("ZREADER") {
      #expect(reader.value(forKey: "name") == nil)
      #expect(reader.isFault)
      #expect(!reader.isDeleted)
      Subject(context: world.context).name = "new"
      #expect(throws: CocoaError.self) { try world.context.save() }
    }
    #expect(reader.name == "Ada")
    try world.context.save()
    #expect(!world.context.hasChanges)
    #expect(try world.count("ZREADER") == .integer(1))
  }

  @Test("A relationship that could not be read stays unloaded, and is read later")
  func relationship() throws {
    let world = try World(Self.fill)
    let reader = try world.first(Reader.self, "Reader")
    try world.without("ZBOOK") {
      #expect(reader.loans.isEmpty)
      #expect(reader.hasFault(forRelationshipNamed: "loans"))
    }
    #expect(reader.loans.map(\.title) == ["Sums"])
  }

  @Test("A cascade whose members could not be read fails the save, and the next save applies it")
  func cascade() throws {
    let world = try World(Self.fill)
    let book = try world.first(Book.self, "Book")
    #expect(book.title == "Sums")
    try world.without("ZCHAPTER") {
      world.context.delete(book)
      world.context.processPendingChanges()
      #expect(throws: CocoaError.self) { try world.context.save() }
    }
    #expect(try world.count("ZBOOK") == .integer(1))
    try world.context.save()
    #expect(try world.count("ZBOOK") == .integer(0))
    #expect(try world.count("ZCHAPTER") == .integer(0))
  }

  @Test("An unread relationship does not permit a deletion that its deny rule forbids")
  func deny() throws {
    let world = try World(Self.fill)
    let shelf = try world.first(NSManagedObject.self, "Shelf")
    #expect(shelf.value(forKey: "label") == nil)
    try world.without("ZBOOK") {
      world.context.delete(shelf)
      #expect(throws: CocoaError.self) { try world.context.save() }
    }
    let error = try #require(throws: CocoaError.self) { try world.context.save() }
    #expect(error.code.rawValue == NSValidationRelationshipDeniedDeleteError)
    #expect(try world.count("ZSHELF") == .integer(1))
  }

  @Test("A value set on an object that could not be read fails every save until a rollback")
  func lostChange() throws {
    let world = try World(Self.fill)
    let reader = try world.first(Reader.self, "Reader")
    try world.without("ZREADER") { reader.name = "Eve" }
    #expect(throws: CocoaError.self) { try world.context.save() }
    #expect(throws: CocoaError.self) { try world.context.save() }
    world.context.rollback()
    reader.name = "Eve"
    try world.context.save()
    #expect(try world.count("ZREADER WHERE ZNAME = 'Eve'") == .integer(1))
  }

  @Test("Replacing members that could not be read fails every save until a rollback")
  func lostMembers() throws {
    let world = try World(Self.fill)
    let reader = try world.first(Reader.self, "Reader")
    #expect(reader.name == "Ada")
    try world.without("ZBOOK") { reader.loans = [] }
    #expect(throws: CocoaError.self) { try world.context.save() }
    world.context.rollback()
    #expect(reader.loans.count == 1)
    try world.context.save()
  }

  @Test(
    "A child's failed read in its parent is reported to the child, and the object is not deleted"
  )
  func child() throws {
    let world = try World(Self.fill)
    let child = NSManagedObjectContext(concurrencyType: .confinementConcurrencyType)
    child.parent = world.context
    let identifier = try world.first(Reader.self, "Reader").objectID
    let reader = try #require(child.object(with: identifier) as? Reader)
    try world.without("ZREADER") {
      #expect(reader.value(forKey: "name") == nil)
      #expect(reader.isFault && !reader.isDeleted)
    }
    #expect(reader.name == "Ada")
    try world.without("ZBOOK") { #expect(reader.loans.isEmpty) }
    #expect(reader.loans.count == 1)
  }

  @Test("The objects of a store that was removed are not deleted")
  func removedStore() throws {
    let world = try World(Self.fill)
    let reader = try world.first(Reader.self, "Reader")
    let coordinator = world.container.persistentStoreCoordinator
    try coordinator.remove(coordinator.persistentStores[0])
    // The context has no queue: its objects stay, and read nothing.
    #expect(reader.value(forKey: "name") == nil)
    #expect(reader.isFault && !reader.isDeleted)
    #expect(world.context.deletedObjects.isEmpty)
  }

  @Test("A child's save for which the parent cannot read changes nothing, and can be repeated")
  func childSave() throws {
    let world = try World(Self.fill)
    let parent = world.context
    let child = NSManagedObjectContext(concurrencyType: .confinementConcurrencyType)
    child.parent = parent
    let own = try world.first(Book.self, "Book")
    let reader = try world.first(Reader.self, "Reader")
    let childReader = try #require(child.object(with: reader.objectID) as? Reader)
    let childBook = try #require(child.object(with: own.objectID) as? Book)
    childReader.name = "Eve"
    let chapters = childBook.mutableOrderedSetValue(forKey: "chapters")
    #expect(chapters.count == 2)
    chapters.moveObjects(at: IndexSet(integer: 1), to: 0)
    // Neither the parent nor the store has the values cached.
    let other = NSManagedObjectContext(concurrencyType: .confinementConcurrencyType)
    other.persistentStoreCoordinator = world.container.persistentStoreCoordinator
    let stranger = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: other)
    stranger.setValue(Book(context: other), forKey: "book")
    try other.save()
    parent.refreshAllObjects()
    try world.without("ZCHAPTER") {
      #expect(throws: CocoaError.self) { try child.save() }
    }
    #expect(!parent.hasChanges)
    #expect(child.updatedObjects.isSuperset(of: [childReader, childBook]))
    try child.save()
    #expect(reader.name == "Eve")
    let headings = (own.value(forKey: "chapters") as? NSOrderedSet)?.array.compactMap {
      ($0 as? NSManagedObject)?.value(forKey: "heading") as? String
    }
    #expect(
      headings
        == chapters.compactMap { ($0 as? NSManagedObject)?.value(forKey: "heading") as? String }
    )
  }
}
