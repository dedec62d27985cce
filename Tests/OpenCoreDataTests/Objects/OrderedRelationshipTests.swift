import Foundation
import OpenCoreData
import Testing

@Suite("Ordered relationships")
struct OrderedRelationshipTests {
  private func with(
    chapters count: Int = 4,
    _ body: (Book, [NSManagedObject], NSManagedObjectContext) throws -> Void
  ) throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let book = Book(context: context)
      let chapters = (0..<count).map { number in
        let chapter = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
        chapter.setValue("\(number)", forKey: "heading")
        return chapter
      }
      book.setValue(NSOrderedSet(array: chapters), forKey: "chapters")
      try context.save()
      try body(book, chapters, context)
      // Another context reads the same result after a save.
      let headings = Self.headings(of: book)
      try context.save()
      let other = library.context()
      try other.performAndWait {
        let same = try #require(try other.existingObject(with: book.objectID) as? Book)
        #expect(Self.headings(of: same) == headings)
      }
    }
  }

  private static func headings(of book: Book) -> String {
    let chapters = book.value(forKey: "chapters") as? NSOrderedSet
    return chapters?.array.compactMap {
      ($0 as? NSManagedObject)?.value(forKey: "heading") as? String
    }
    .joined() ?? "?"
  }

  @Test("Members can be moved, and the order is stored")
  func moves() throws {
    try with { book, _, _ in
      let set = book.mutableOrderedSetValue(forKey: "chapters")
      set.moveObjects(at: IndexSet([0]), to: 3)
      #expect(Self.headings(of: book) == "1230")
      set.moveObjects(at: IndexSet([2, 3]), to: 0)
      #expect(Self.headings(of: book) == "3012")
      set.exchangeObject(at: 0, withObjectAt: 3)
      #expect(Self.headings(of: book) == "2013")
    }
  }

  @Test("Members can be inserted, replaced and removed at indexes")
  func places() throws {
    try with { book, chapters, context in
      let set = book.mutableOrderedSetValue(forKey: "chapters")
      let extra = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      extra.setValue("x", forKey: "heading")
      set.replaceObject(at: 1, with: extra)
      #expect(Self.headings(of: book) == "0x23")
      #expect(chapters[1].value(forKey: "book") == nil)
      #expect(extra.value(forKey: "book") as? Book === book)
      set.insert(chapters[1], at: 0)
      #expect(Self.headings(of: book) == "10x23")
      set.removeObjects(at: IndexSet([0, 4]))
      #expect(Self.headings(of: book) == "0x2")
      set.removeObjects(in: [extra])
      #expect(Self.headings(of: book) == "02")
      set.addObjects(from: [extra, chapters[3]])
      #expect(Self.headings(of: book) == "02x3")
      set.insert([chapters[1]], at: IndexSet([1]))
      #expect(Self.headings(of: book) == "012x3")
      set.removeObject(at: 3)
      context.delete(extra)
    }
  }

  @Test("A member that replaces another stays where it is, and no member is lost")
  func replacedByMember() throws {
    try with { book, chapters, context in
      let set = book.mutableOrderedSetValue(forKey: "chapters")
      for (place, member) in [(0, 2), (3, 1), (1, 1)] {
        set.replaceObject(at: place, with: chapters[member])
        #expect(Self.headings(of: book) == "0123")
      }
      set.setObject(chapters[0], at: 2)
      set[1] = chapters[3]
      #expect(Self.headings(of: book) == "0123")
      #expect(set.count == 4)
      #expect(chapters.allSatisfy { $0.value(forKey: "book") as? Book === book })
      #expect(!context.hasChanges)
    }
  }

  @Test("The set reads like any ordered set")
  func reading() throws {
    try with { book, chapters, _ in
      let set = book.mutableOrderedSetValue(forKey: "chapters")
      #expect(set.count == 4)
      #expect(set.array as? [NSManagedObject] == chapters)
      #expect(set.map { $0 as? NSManagedObject } == chapters)
      #expect(set.firstObject as? NSManagedObject === chapters[0])
      #expect(set.lastObject as? NSManagedObject === chapters[3])
      #expect(set[2] as? NSManagedObject === chapters[2])
      #expect(set.index(of: chapters[1]) == 1)
      #expect(set.contains(chapters[3]))
      #expect(set.set.count == 4)
      #expect(set.reversed.firstObject as? NSManagedObject === chapters[3])
      #expect((set.copy() as? NSOrderedSet)?.count == 4)
      #expect((set.mutableCopy() as? NSMutableOrderedSet)?.count == 4)
      #expect(set.isEqual(to: NSOrderedSet(array: chapters)))
    }
  }

  @Test("Whole sets can be added and removed")
  func algebra() throws {
    try with { book, chapters, _ in
      let set = book.mutableOrderedSetValue(forKey: "chapters")
      set.minus(NSOrderedSet(array: [chapters[0], chapters[2]]))
      #expect(Self.headings(of: book) == "13")
      set.union(NSOrderedSet(array: [chapters[2], chapters[3]]))
      #expect(Self.headings(of: book) == "132")
      set.intersect(NSOrderedSet(array: [chapters[2], chapters[1]]))
      #expect(Self.headings(of: book) == "12")
      #expect(chapters[3].value(forKey: "book") == nil)
      set.sort(comparator: { left, right in
        let (left, right) = (left as? NSManagedObject, right as? NSManagedObject)
        return (right?.value(forKey: "heading") as? String ?? "")
          .compare(left?.value(forKey: "heading") as? String ?? "")
      })
      #expect(Self.headings(of: book) == "21")
    }
  }

  @Test("The mutable set shows later changes of the relationship")
  func live() throws {
    try with { book, chapters, context in
      let set = book.mutableOrderedSetValue(forKey: "chapters")
      chapters[0].setValue(nil, forKey: "book")
      #expect(set.count == 3)
      context.delete(chapters[1])
      context.processPendingChanges()
      #expect(set.count == 2)
      chapters[0].setValue(book, forKey: "book")
      #expect(set.lastObject as? NSManagedObject === chapters[0])
    }
  }

  @Test("A mutable set supports the methods of any set")
  func unordered() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    context.performAndWait {
      let reader = Reader(context: context)
      let books = (0..<4).map { _ in Book(context: context) }
      let set = reader.mutableSetValue(forKey: "loans")
      set.addObjects(from: books)
      #expect(set.count == 4)
      #expect(Set(set.compactMap { $0 as? Book }) == Set(books))
      #expect(set.allObjects.count == 4)
      #expect(set.anyObject() is Book)
      #expect(set.isEqual(to: Set<AnyHashable>(books)))
      set.minus([books[0]])
      #expect(books[0].loanedTo == nil)
      set.intersect([books[1], books[2]])
      #expect(reader.loans == [books[1], books[2]])
      set.union([books[3]])
      #expect(books[3].loanedTo === reader)
      set.setSet([books[0]])
      #expect(reader.loans == [books[0]])
      books[1].loanedTo = reader
      #expect(set.contains(books[1]))
      #expect((set.copy() as? NSSet)?.count == 2)
      #expect(set.description.contains("Book"))
    }
  }
}
