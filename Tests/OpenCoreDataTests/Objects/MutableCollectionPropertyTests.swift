import Foundation
import OpenCoreData
import Testing

/// Relationships that a class declares as mutable collections: changes of these change the relationship.
@Suite("Properties of mutable collections")
struct MutableCollectionPropertyTests {
  private static let loans = ManagedAccessor.property("loans", of: NSMutableSet.self)
  private static let maybeLoans = ManagedAccessor.property("loans", of: NSMutableSet?.self)
  private static let chapters = ManagedAccessor.property("chapters", of: NSMutableOrderedSet.self)
  private static let maybeChapters = ManagedAccessor.property(
    "chapters",
    of: NSMutableOrderedSet?.self
  )

  @Test("A change of the set is a change of the relationship and of its inverse")
  func sets() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      reader.name = "Ada"
      let books = (0..<2).map { _ in Book(context: context) }
      reader[Self.loans].add(books[0])
      let maybe = try #require(reader[Self.maybeLoans])
      maybe.add(books[1])
      #expect(reader.loans == Set(books))
      #expect(books[1].value(forKey: "loanedTo") as? Reader == reader)
      #expect(reader[Self.loans].count == 2)
      reader[Self.loans] = NSMutableSet(array: [books[1]])
      #expect(reader.loans == [books[1]])
      reader[Self.maybeLoans] = nil
      #expect(reader.loans.isEmpty)
    }
  }

  @Test("A change of the ordered set is a change of the relationship")
  func orderedSets() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let book = Book(context: context)
      let chapters = (0..<2).map { _ in
        NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      }
      book[Self.chapters].add(chapters[0])
      try #require(book[Self.maybeChapters]).insert(chapters[1], at: 0)
      let stored = (book.value(forKey: "chapters") as? NSOrderedSet)?.array as? [NSManagedObject]
      #expect(stored == [chapters[1], chapters[0]])
    }
  }

  @Test("The elements of a mutable set are its allObjects: a cast of it to a Set is empty")
  func elements() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      let book = Book(context: context)
      reader[Self.loans].add(book)
      let elements = try #require(reader[Self.loans].allObjects as? [Book])
      #expect(Set(elements) == [book])
      // What the page about moving a package warns of. If this fails, the page can lose its warning.
      #expect(((reader[Self.loans] as? Set<Book>) ?? []).isEmpty)
    }
  }

  @Test("A relationship that is declared with the wrong type of elements stops the program")
  func wrongElements() async {
    await #expect(processExitsWith: .failure) {
      let library = try Library(inMemory: true)
      let context = library.context()
      context.performAndWait {
        let reader = Reader(context: context)
        reader.loans = [Book(context: context)]
        _ = reader[ManagedObjectProperty<Set<NSString>>("loans")]
      }
    }
  }
}
