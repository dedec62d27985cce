import Foundation
import OpenCoreData
import Testing

/// Relationships as sets that key-value coding and accessors of type `NSSet` give.
@Suite("Members that are read again and again")
struct KeptCollectionTests {
  private let library: Library
  private let context: NSManagedObjectContext

  init() throws {
    library = try Library()
    context = library.context()
  }

  @Test("A large to-many returns the same NSSet instance until its members change")
  func set() throws {
    try context.performAndWait {
      let reader = Reader(context: context)
      let books = (0..<100).map { _ in Book(context: context) }
      reader.loans = Set(books)
      try context.save()
      context.refreshAllObjects()
      func loans() throws -> NSSet { try #require(reader.value(forKey: "loans") as? NSSet) }
      let first = try loans()
      #expect(first.count == 100)
      try #expect(loans() === first)
      books[0].loanedTo = nil
      let second = try loans()
      #expect(second !== first)
      #expect((first.count, second.count) == (100, 99))
      reader.loans.insert(books[0])
      try #expect(loans().count == 100)
      context.rollback()
      try #expect(loans().count == 100)
      context.delete(books[1])
      context.processPendingChanges()
      try #expect(loans().count == 99)
    }
  }

  @Test("An ordered set follows insertions and new orders")
  func orderedSet() throws {
    try context.performAndWait {
      let book = Book(context: context)
      let chapters = (0..<50).map { _ in
        NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      }
      book.setValue(NSOrderedSet(array: chapters), forKey: "chapters")
      func ordered() throws -> NSOrderedSet {
        try #require(book.value(forKey: "chapters") as? NSOrderedSet)
      }
      let first = try ordered()
      try #expect(ordered() === first)
      book.mutableOrderedSetValue(forKey: "chapters").exchangeObject(at: 0, withObjectAt: 49)
      try #expect(ordered().firstObject as? NSManagedObject === chapters[49])
      #expect(first.firstObject as? NSManagedObject === chapters[0])
      book.setValue(NSOrderedSet(), forKey: "chapters")
      try #expect(ordered().count == 0)
    }
  }
}
