import Foundation
import OpenCoreData
import Testing

/// What handlers of a turn's notification read of the changes before it.
@Suite("Former values of the current event")
struct CurrentEventTests {
  private let library: Library
  private let context: NSManagedObjectContext

  init() throws {
    library = try Library()
    context = library.context()
  }

  /// The former values of an object in the notifications of the context while a body runs.
  private func formerValues(
    of object: NSManagedObject,
    _ body: () throws -> Void
  ) rethrows -> [[String: Any]] {
    nonisolated(unsafe) var found: [[String: Any]] = []
    nonisolated(unsafe) let object = object
    let token = NotificationCenter.default.addObserver(
      forName: .NSManagedObjectContextObjectsDidChange,
      object: context,
      queue: nil
    ) { _ in found.append(object.changedValuesForCurrentEvent()) }
    defer { NotificationCenter.default.removeObserver(token) }
    try body()
    context.processPendingChanges()
    return found
  }

  private func saved<Object: NSManagedObject>(_ make: () -> Object) throws -> Object {
    let object = make()
    try context.save()
    return object
  }

  @Test("An attribute is reported with its value before the turn, not with the stored one")
  func attributes() throws {
    try context.performAndWait {
      let book = try saved { () -> Book in
        let book = Book(context: context)
        book.title = "a"
        return book
      }
      let first = formerValues(of: book) {
        book.title = "b"
        book.pages = 7
      }
      #expect(first.map { $0.count } == [2])
      #expect(first[0]["title"] as? String == "a")
      #expect(first[0]["pages"] is NSNull)
      let second = formerValues(of: book) { book.title = "c" }
      #expect(second.map { $0["title"] as? String } == ["b"])
      #expect(second[0].count == 1)
      #expect(book.changedValues()["title"] as? String == "c")
      #expect(book.changedValuesForCurrentEvent().isEmpty)
    }
  }

  @Test("The handlers of a save's last turn read the stored values")
  func saving() throws {
    try context.performAndWait {
      let book = try saved { () -> Book in
        let book = Book(context: context)
        book.title = "a"
        book.setValue(["x"], forKey: "notes")
        return book
      }
      let found = try formerValues(of: book) {
        book.title = "b"
        book.setValue(["y"], forKey: "notes")
        try context.save()
      }
      #expect(found.map { $0["title"] as? String } == ["a"])
      #expect(found.map { $0["notes"] as? [String] } == [["x"]])
      let next = formerValues(of: book) { book.title = "c" }
      #expect(next.map { $0["title"] as? String } == ["b"])
    }
  }

  @Test("A new object's former values are the model's defaults, then those of its last turn")
  func insertions() {
    context.performAndWait {
      let reader = Reader(context: context)
      let first = formerValues(of: reader) { reader.age = 3 }
      #expect(first.map { $0["age"] as? Int } == [18])
      let second = formerValues(of: reader) { reader.age = 4 }
      #expect(second.map { $0["age"] as? Int } == [3])
    }
  }

  @Test("A transient property is not reported")
  func transient() {
    context.performAndWait {
      let book = Book(context: context)
      let found = formerValues(of: book) {
        book.setValue("gloomy", forKey: "mood")
        book.title = "a"
      }
      #expect(found.map { $0.keys.sorted() } == [["title"]])
    }
  }

  @Test("A rollback makes the stored values the former ones again")
  func rollback() throws {
    try context.performAndWait {
      let book = try saved { () -> Book in
        let book = Book(context: context)
        book.title = "a"
        return book
      }
      book.title = "b"
      context.processPendingChanges()
      context.rollback()
      let found = formerValues(of: book) { book.title = "c" }
      #expect(found.map { $0["title"] as? String } == ["a"])
    }
  }

  @Test("A to-one is reported with its former destination, a to-many with its former members")
  func relationships() throws {
    try context.performAndWait {
      let (ada, eve) = (Reader(context: context), Reader(context: context))
      let books = (0..<3).map { _ in Book(context: context) }
      let subject = Subject(context: context)
      books[0].loanedTo = ada
      books[1].loanedTo = ada
      books[0].subjects = [subject]
      try context.save()

      let moved = formerValues(of: books[0]) { books[0].loanedTo = eve }
      #expect(moved.map { $0["loanedTo"] as? Reader } == [ada])
      let back = formerValues(of: ada) {
        books[0].loanedTo = ada
        books[1].loanedTo = nil
        books[2].loanedTo = ada
      }
      #expect(back.map { $0["loans"] as? NSSet } == [NSSet(array: [books[1]])])
      #expect(ada.loans == [books[0], books[2]])
      let left = formerValues(of: books[1]) { books[1].loanedTo = eve }
      #expect(left.map { $0["loanedTo"] is NSNull } == [true])
      let many = formerValues(of: subject) { subject.books.insert(books[2]) }
      #expect(many.map { $0["books"] as? NSSet } == [NSSet(array: [books[0]])])
    }
  }

  // MARK: Changes by handlers

  /// The former values of an object in each notification; after the first, its handler runs a block.
  private func formerValues(
    of object: NSManagedObject,
    _ body: () throws -> Void,
    changing handler: @escaping () throws -> Void
  ) throws -> [[String: Any]] {
    nonisolated(unsafe) var found: [[String: Any]] = []
    nonisolated(unsafe) let object = object
    nonisolated(unsafe) let handler = handler
    let token = NotificationCenter.default.addObserver(
      forName: .NSManagedObjectContextObjectsDidChange,
      object: context,
      queue: nil
    ) { _ in
      found.append(object.changedValuesForCurrentEvent())
      guard found.count == 1 else { return }
      do { try handler() } catch { Issue.record(error) }
    }
    defer { NotificationCenter.default.removeObserver(token) }
    try body()
    context.processPendingChanges()
    context.processPendingChanges()
    return found
  }

  @Test("A handler's change belongs to the next turn, which reports it alone")
  func changeByHandler() throws {
    try context.performAndWait {
      let ada = Reader(context: context)
      let book = try saved { () -> Book in
        let book = Book(context: context)
        book.title = "a"
        book.pages = 1
        return book
      }
      let found = try formerValues(of: book) {
        book.title = "b"
        book.loanedTo = ada
      } changing: {
        book.pages = 2
      }
      #expect(found.map { $0.keys.sorted() } == [["loanedTo", "title"], ["pages"]])
      #expect(found[1]["pages"] as? Int == 1)
      let again = formerValues(of: book) { book.title = "c" }
      #expect(again.map { $0.keys.sorted() } == [["title"]])
      #expect(again[0]["title"] as? String == "b")
    }
  }

  @Test("What a handler changes once more is reported with the value that the handler found")
  func secondChangeByHandler() throws {
    try context.performAndWait {
      let (ada, eve) = (Reader(context: context), Reader(context: context))
      let chapters = (0..<3).map { _ in
        NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      }
      let book = try saved { () -> Book in
        let book = Book(context: context)
        book.title = "a"
        return book
      }
      let found = try formerValues(of: book) {
        book.title = "b"
        book.loanedTo = ada
        book.setValue(NSOrderedSet(array: chapters), forKey: "chapters")
      } changing: {
        book.title = "c"
        book.loanedTo = eve
        book.setValue(NSOrderedSet(array: chapters.reversed()), forKey: "chapters")
      }
      #expect(found.count == 2)
      #expect(found.last?.keys.sorted() == ["chapters", "loanedTo", "title"])
      #expect(found.last?["title"] as? String == "b")
      #expect(found.last?["loanedTo"] as? Reader == ada)
    }
  }

  @Test("A turn that a handler ends, and a save in a handler, begin the next turn's values")
  func turnInHandler() throws {
    try context.performAndWait {
      let book = try saved { () -> Book in
        let book = Book(context: context)
        book.title = "a"
        book.pages = 1
        return book
      }
      let ended = try formerValues(of: book) {
        book.title = "b"
      } changing: {
        book.pages = 2
        context.processPendingChanges()
        book.pages = 3
      }
      #expect(ended.map { $0.keys.sorted() } == [["title"], ["pages"], ["pages"]])
      #expect(ended.compactMap { $0["pages"] as? Int } == [1, 2])
      let afterSave = try formerValues(of: book) {
        book.title = "c"
      } changing: {
        try context.save()
        book.title = "d"
      }
      #expect(afterSave.map { $0.keys.sorted() } == [["title"], ["title"]])
      #expect(afterSave.last?["title"] as? String == "c")
    }
  }

  @Test("A handler's change is undone and redone with the change before it")
  func undoOfChangeByHandler() throws {
    try context.performAndWait {
      let book = try saved { () -> Book in
        let book = Book(context: context)
        book.title = "a"
        book.pages = 1
        return book
      }
      let manager = UndoManager.manual()
      context.undoManager = manager
      manager.beginUndoGrouping()
      _ = try formerValues(of: book) {
        book.title = "b"
      } changing: {
        book.pages = 2
      }
      manager.endUndoGrouping()
      #expect(book.title == "b" && book.pages == 2)
      manager.undo()
      #expect(book.title == "a" && book.pages == 1)
      manager.redo()
      #expect(book.title == "b" && book.pages == 2)
      context.undoManager = nil
    }
  }

  // MARK: Deletions

  @Test("A deleted object reports its nullified relationships, and has no destinations any more")
  func deletion() throws {
    try context.performAndWait {
      let ada = Reader(context: context)
      let book = Book(context: context)
      let subject = Subject(context: context)
      book.loanedTo = ada
      book.subjects = [subject]
      try context.save()

      context.delete(book)
      #expect(book.loanedTo === ada)
      let found = formerValues(of: book) {}
      #expect(found.map { $0["loanedTo"] as? Reader } == [ada])
      #expect(found.map { $0["subjects"] as? NSSet } == [NSSet(array: [subject])])
      #expect(book.loanedTo == nil)
      #expect(book.value(forKey: "loanedTo") == nil)
      #expect(book.subjects.isEmpty)
      #expect((book.value(forKey: "subjects") as? NSSet)?.count == 0)
      #expect(book.mutableSetValue(forKey: "subjects").count == 0)
      #expect(!book.mutableSetValue(forKey: "subjects").contains(subject))
      #expect(book.changedValuesForCurrentEvent().isEmpty)
      #expect(book.committedValues(forKeys: ["loanedTo"])["loanedTo"] as? Reader === ada)

      context.rollback()
      #expect(book.loanedTo === ada)
      #expect(book.subjects == [subject])
    }
  }

  @Test("Objects that are deleted together report each other")
  func cascade() throws {
    try context.performAndWait {
      let ada = Reader(context: context)
      let card = Card(context: context)
      ada.card = card
      try context.save()
      let found = formerValues(of: card) { context.delete(ada) }
      #expect(card.isDeleted)
      #expect(found.map { $0["reader"] as? Reader } == [ada])
      #expect(card.reader == nil)
    }
  }

  @Test("After a failed save the relationships are there again with the rollback")
  func failedSave() throws {
    try context.performAndWait {
      let ada = Reader(context: context)
      let book = Book(context: context)
      book.loanedTo = ada
      try context.save()
      context.delete(book)
      ada.name = ""
      #expect(throws: (any Error).self) { try context.save() }
      #expect(book.loanedTo == nil)
      context.rollback()
      #expect(book.loanedTo === ada)
      #expect(ada.loans == [book])
    }
  }

  @Test("A saved deletion leaves no join row, and its notification shows no destination")
  func savedDeletion() throws {
    try context.performAndWait {
      let book = Book(context: context)
      let subject = Subject(context: context)
      book.subjects = [subject]
      try context.save()
      nonisolated(unsafe) var counts: [Int] = []
      nonisolated(unsafe) let deleted = book
      let token = NotificationCenter.default.addObserver(
        forName: .NSManagedObjectContextDidSave,
        object: context,
        queue: nil
      ) { _ in counts.append(deleted.subjects.count) }
      defer { NotificationCenter.default.removeObserver(token) }
      context.delete(book)
      try context.save()
      #expect(counts == [0])
      #expect(subject.books.isEmpty)
    }
    let check = try library.reopened().newBackgroundContext()
    try check.performAndWait {
      let subject = try #require(
        try check.fetch(NSFetchRequest<Subject>(entityName: "Subject")).first
      )
      #expect(subject.books.isEmpty)
    }
  }

  @Test("The changed values of a deleted object have no destination that was nullified")
  func changedValues() throws {
    try context.performAndWait {
      let ada = Reader(context: context)
      let book = try saved { Book(context: context) }
      book.loanedTo = ada
      context.delete(book)
      context.processPendingChanges()
      #expect(book.changedValues()["loanedTo"] is NSNull)
    }
  }

  @Test("A saved deletion that can be undone shows no destination until then")
  func savedDeletionWithUndo() throws {
    try context.performAndWait {
      let ada = Reader(context: context)
      let book = Book(context: context)
      book.loanedTo = ada
      try context.save()
      let manager = UndoManager.manual()
      context.undoManager = manager
      manager.beginUndoGrouping()
      context.delete(book)
      context.processPendingChanges()
      manager.endUndoGrouping()
      try context.save()
      #expect(book.loanedTo == nil)
      manager.undo()
      #expect(book.loanedTo === ada)
      context.undoManager = nil
    }
  }

  @Test("Undoing a deletion shows the relationships again")
  func undo() throws {
    try context.performAndWait {
      let ada = Reader(context: context)
      let book = Book(context: context)
      book.loanedTo = ada
      try context.save()
      let manager = UndoManager.manual()
      context.undoManager = manager
      manager.beginUndoGrouping()
      context.delete(book)
      context.processPendingChanges()
      manager.endUndoGrouping()
      #expect(book.loanedTo == nil)
      manager.undo()
      #expect(book.loanedTo === ada)
      #expect(ada.loans == [book])
      context.undoManager = nil
      try context.save()
    }
    let check = library.context()
    try check.performAndWait {
      let reader = try #require(try check.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first)
      #expect(reader.loans.count == 1)
    }
  }
}
