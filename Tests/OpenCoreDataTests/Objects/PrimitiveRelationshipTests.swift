import Foundation
import OpenCoreData
import Testing

/// Accessors that change a relationship's primitive value between announcements, as Apple's guide
/// writes them: "Custom Accessor Methods" in the Core Data Programming Guide.
@Suite("Primitive values of relationships")
struct PrimitiveRelationshipTests {
  private let library: Library
  private let context: NSManagedObjectContext

  init() throws {
    library = try Library()
    context = library.context()
  }

  private func set(_ value: Any?, _ key: String, of object: NSManagedObject) {
    object.willChangeValue(forKey: key)
    object.setPrimitiveValue(value, forKey: key)
    object.didChangeValue(forKey: key)
  }

  private func change(
    _ kind: NSKeyValueSetMutationKind,
    _ members: [NSManagedObject],
    _ key: String,
    of object: NSManagedObject,
    _ body: (NSMutableSet) -> Void
  ) throws {
    let members = Set<AnyHashable>(members)
    object.willChangeValue(forKey: key, withSetMutation: kind, using: members)
    body(try #require(object.primitiveValue(forKey: key) as? NSMutableSet))
    object.didChangeValue(forKey: key, withSetMutation: kind, using: members)
  }

  @Test("Adding to and removing from the primitive set keeps the inverse, also in the store")
  func toMany() throws {
    try context.performAndWait {
      let reader = Reader(context: context)
      let former = Reader(context: context)
      let books = (0..<3).map { _ in Book(context: context) }
      books[0].loanedTo = former
      try context.save()
      try change(.union, [books[0], books[1]], "loans", of: reader) {
        $0.add(books[0])
        $0.union([books[1]])
      }
      #expect(books[0].loanedTo == reader && books[1].loanedTo == reader)
      #expect(former.loans.isEmpty)
      try context.save()
      context.refreshAllObjects()
      #expect(reader.loans == [books[0], books[1]] && former.loans.isEmpty)
      try change(.minus, [books[0]], "loans", of: reader) { $0.remove(books[0]) }
      #expect(books[0].loanedTo == nil)
      try context.save()
      context.refreshAllObjects()
      #expect(reader.loans == [books[1]])
    }
  }

  @Test("Setting the primitive set between announcements keeps the inverse, of either kind")
  func replacedSet() throws {
    try context.performAndWait {
      let reader = Reader(context: context)
      let subject = Subject(context: context)
      let books = (0..<3).map { _ in Book(context: context) }
      try context.save()
      set(NSSet(array: [books[0], books[1]]), "loans", of: reader)
      set(NSSet(array: [books[1], books[2]]), "loans", of: reader)
      set(NSSet(array: books), "books", of: subject)
      #expect(books.map(\.loanedTo) == [nil, reader, reader])
      #expect(books.allSatisfy { $0.subjects == [subject] })
      try context.save()
      context.refreshAllObjects()
      #expect(reader.loans == [books[1], books[2]])
      #expect(books[0].subjects == [subject])
    }
  }

  @Test("An accessor of a to-one keeps the inverse: of a to-many, and of a one-to-one")
  func toOne() throws {
    try context.performAndWait {
      let readers = (0..<2).map { _ in Reader(context: context) }
      let cards = (0..<2).map { _ in Card(context: context) }
      let book = Book(context: context)
      book.loanedTo = readers[0]
      cards[0].reader = readers[0]
      cards[1].reader = readers[1]
      try context.save()
      set(readers[1], "loanedTo", of: book)
      #expect(readers[0].loans.isEmpty && readers[1].loans == [book])
      set(readers[1], "reader", of: cards[0])
      #expect(readers[0].card == nil && readers[1].card == cards[0] && cards[1].reader == nil)
      try context.save()
      context.refreshAllObjects()
      #expect(readers[0].card == nil && readers[1].card == cards[0] && cards[1].reader == nil)
      set(nil, "loanedTo", of: book)
      #expect(readers[1].loans.isEmpty)
    }
  }

  @Test("An ordered relationship's accessor keeps the order and the inverse")
  func ordered() throws {
    try context.performAndWait {
      let book = Book(context: context)
      let chapters = (0..<3).map { _ in
        NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      }
      book.setValue(NSOrderedSet(array: [chapters[0], chapters[1]]), forKey: "chapters")
      try context.save()
      let known = try #require(book.primitiveValue(forKey: "chapters") as? NSOrderedSet)
      let copy = NSMutableOrderedSet(orderedSet: known)
      copy.insert(chapters[2], at: 0)
      book.willChange(.insertion, valuesAt: [0], forKey: "chapters")
      book.setPrimitiveValue(copy, forKey: "chapters")
      book.didChange(.insertion, valuesAt: [0], forKey: "chapters")
      #expect(chapters[2].value(forKey: "book") as? Book == book)
      try context.save()
      context.refreshAllObjects()
      let order = [chapters[2], chapters[0], chapters[1]]
      #expect(
        (book.value(forKey: "chapters") as? NSOrderedSet)?.array as? [NSManagedObject] == order
      )
      book.willChangeValue(forKey: "chapters")
      let live = try #require(book.primitiveValue(forKey: "chapters") as? NSMutableOrderedSet)
      live.removeObject(at: 1)
      live.exchangeObject(at: 0, withObjectAt: 1)
      book.didChangeValue(forKey: "chapters")
      #expect(chapters[0].value(forKey: "book") == nil)
      try context.save()
      context.refreshAllObjects()
      #expect(
        (book.value(forKey: "chapters") as? NSOrderedSet)?.array as? [NSManagedObject]
          == [chapters[1], chapters[2]]
      )
    }
  }

  @Test("Without announcements a primitive value keeps no inverse, also before a later one")
  func unannounced() throws {
    try context.performAndWait {
      let reader = Reader(context: context)
      let books = (0..<2).map { _ in Book(context: context) }
      try context.save()
      reader.setPrimitiveValue(NSSet(object: books[0]), forKey: "loans")
      #expect(reader.loans == [books[0]] && books[0].loanedTo == nil)
      #expect(!context.hasChanges)
      try change(.union, [books[1]], "loans", of: reader) { $0.add(books[1]) }
      #expect(books[0].loanedTo == nil && books[1].loanedTo == reader)
    }
  }

  @Test("A change by an accessor of the app's own is undone on both sides")
  func undo() throws {
    try context.performAndWait {
      let manager = UndoManager.manual()
      let reader = Reader(context: context)
      let book = Book(context: context)
      try context.save()
      context.undoManager = manager
      manager.beginUndoGrouping()
      try change(.union, [book], "loans", of: reader) { $0.add(book) }
      context.processPendingChanges()
      manager.endUndoGrouping()
      #expect(book.loanedTo == reader)
      manager.undo()
      #expect(book.loanedTo == nil && reader.loans.isEmpty)
    }
  }

  @Test("An accessor within an accessor of the same relationship leaves the outer one its set")
  func nested() throws {
    try context.performAndWait {
      let reader = Reader(context: context)
      let books = (0..<4).map { _ in Book(context: context) }
      try change(.union, [books[0], books[3]], "loans", of: reader) { outer in
        outer.add(books[0])
        #expect(throws: Never.self) {
          try change(.union, [books[1]], "loans", of: reader) { $0.add(books[1]) }
        }
        #expect(outer.count == 2)
        set(NSSet(array: [books[0], books[1], books[2]]), "loans", of: reader)
        #expect(outer.count == 3)
        outer.add(books[3])
      }
      #expect(reader.loans == Set(books))
      #expect(books.allSatisfy { $0.loanedTo == reader })
      try context.save()
      context.refreshAllObjects()
      #expect(reader.loans == Set(books))
    }
  }

  @Test("An accessor that calls for the primitive set twice changes one set")
  func severalCalls() throws {
    try context.performAndWait {
      let subject = Subject(context: context)
      let books = (0..<3).map { _ in Book(context: context) }
      subject.books = [books[2]]
      #expect(subject.primitiveValue(forKey: "books") as? Set<Book> == [books[2]])
      subject.willChangeValue(forKey: "books")
      for book in books {
        try #require(subject.primitiveValue(forKey: "books") as? NSMutableSet).add(book)
      }
      // What another accessor does meanwhile stays.
      subject.removeFromBooks(books[2])
      subject.didChangeValue(forKey: "books")
      #expect(subject.books == [books[0], books[1]])
      #expect(books.map { $0.subjects.count } == [1, 1, 0])
      #expect(subject.primitiveValue(forKey: "books") as? Set<Book> == [books[0], books[1]])
    }
  }

  @Test("Observers of an ordered relationship get the members at the places of a change")
  func observed() throws {
    try context.performAndWait {
      let book = Book(context: context)
      let chapters = (0..<2).map { _ in
        NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      }
      let watcher = ObservingTests.Watcher()
      book.addObserver(watcher, forKeyPath: "chapters", options: [.old, .new], context: nil)
      book.willChange(.insertion, valuesAt: [0, 1], forKey: "chapters")
      book.setPrimitiveValue(NSOrderedSet(array: chapters), forKey: "chapters")
      book.didChange(.insertion, valuesAt: [0, 1], forKey: "chapters")
      let change = try #require(watcher.changes.last?.change)
      #expect(change[.newKey] as? [NSManagedObject] == chapters)
      #expect(change[.indexesKey] as? IndexSet == [0, 1])
      #expect(change[.oldKey] == nil)
      book.willChange(.removal, valuesAt: [0], forKey: "chapters")
      book.setPrimitiveValue(NSOrderedSet(object: chapters[1]), forKey: "chapters")
      book.didChange(.removal, valuesAt: [0], forKey: "chapters")
      #expect(watcher.changes.last?.change[.oldKey] as? [NSManagedObject] == [chapters[0]])
    }
  }
}

extension Subject {
  fileprivate func removeFromBooks(_ book: Book) {
    mutableSetValue(forKey: "books").remove(book)
  }
}
