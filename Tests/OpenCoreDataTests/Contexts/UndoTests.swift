import Foundation
import OpenCoreData
import Testing

@Suite("Undoing changes of objects")
struct UndoTests {
  /// A context each of whose turns is a group.
  private func world(_ body: (Library, NSManagedObjectContext, UndoManager) throws -> Void) throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    try context.performAndWait {
      let manager = UndoManager.manual()
      context.undoManager = manager
      try body(library, context, manager)
    }
  }

  @Test("A context has no undo manager by default, and undo then does nothing")
  func none() throws {
    let library = try Library(inMemory: true)
    #expect(library.container.viewContext.undoManager == nil)
    let context = library.context()
    context.performAndWait {
      #expect(context.undoManager == nil)
      let reader = Reader(context: context)
      context.undo()
      context.redo()
      #expect(context.insertedObjects == [reader])
    }
  }

  @Test("On the main thread the changes of two events are two groups")
  @MainActor
  func events() async throws {
    let library = try Library(inMemory: true)
    let context = library.container.viewContext
    nonisolated(unsafe) let reader = context.performAndWait { Reader(context: context) }
    reader.name = "first"
    try context.save()
    context.undoManager = UndoManager()
    await withCheckedContinuation { continuation in
      DispatchQueue.main.async {
        context.performAndWait { reader.name = "second" }
        DispatchQueue.main.async {
          context.performAndWait { reader.name = "third" }
          // The end of the turn, and of its group, are queued behind this block.
          DispatchQueue.main.async { DispatchQueue.main.async { continuation.resume() } }
        }
      }
    }
    context.undo()
    #expect(reader.name == "second")
    context.undo()
    #expect(reader.name == "first")
  }

  @Test("With groups by event, all changes since the last undo are undone together")
  func byEvent() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    context.performAndWait {
      context.undoManager = UndoManager()
      let reader = Reader(context: context)
      context.processPendingChanges()
      reader.name = "Ada"
      context.undo()
      #expect(context.insertedObjects.isEmpty)
      context.redo()
      #expect(context.insertedObjects == [reader])
      #expect(reader.name == "Ada")
    }
  }

  @Test("An insertion is undone and redone, with the same object and identifier")
  func insertion() throws {
    try world { _, context, manager in
      var made: Reader?
      manager.step {
        made = Reader(context: context)
        made?.name = "Ada"
      }
      let reader = try #require(made)
      let identifier = reader.objectID
      context.undo()
      #expect(!context.hasChanges)
      #expect(reader.managedObjectContext == nil)
      context.redo()
      #expect(context.insertedObjects == [reader])
      #expect(reader.objectID == identifier)
      #expect(reader.name == "Ada")
      try context.save()
      try #expect(context.count(for: NSFetchRequest<Reader>(entityName: "Reader")) == 1)
    }
  }

  @Test("An object that is inserted again after its deletion was saved has relationships")
  func insertedAgain() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    try context.performAndWait {
      context.undoManager = UndoManager()
      let (reader, book) = (Reader(context: context), Book(context: context))
      reader.name = "Ada"
      book.title = "Notes"
      book.loanedTo = reader
      try context.save()
      context.delete(book)
      try context.save()
      context.insert(book)
      book.loanedTo = reader
      #expect(book.loanedTo === reader)
      try context.save()
      context.delete(book)
      context.processPendingChanges()
      #expect(reader.loans.isEmpty)
    }
  }

  @Test("Values are undone and redone, also nil ones and those set twice")
  func values() throws {
    try world { _, context, manager in
      let book = Book(context: context)
      manager.disableUndoRegistration()
      try context.save()
      manager.enableUndoRegistration()
      manager.step {
        book.title = "Emma"
        book.pages = 1
        book.pages = 2
      }
      manager.step { book.title = "Persuasion" }
      context.undo()
      #expect(book.title == "Emma")
      #expect(book.pages == 2)
      context.undo()
      #expect(book.title == nil)
      #expect(book.pages == 0)
      #expect(book.changedValues().isEmpty)
      context.redo()
      context.redo()
      #expect(book.title == "Persuasion")
      #expect(book.pages == 2)
    }
  }

  @Test("Transformable and transient values are restored too")
  func objectValues() throws {
    try world { _, context, manager in
      var made: Book?
      manager.step { made = Book(context: context) }
      let book = try #require(made)
      manager.step {
        book.setValue(["a"] as NSArray, forKey: "notes")
        book.setValue("glad", forKey: "mood")
      }
      manager.step {
        book.setValue(["b"] as NSArray, forKey: "notes")
        book.setValue("sad", forKey: "mood")
      }
      context.undo()
      #expect(book.value(forKey: "notes") as? [String] == ["a"])
      #expect(book.value(forKey: "mood") as? String == "glad")
      context.undo()
      #expect(book.value(forKey: "notes") == nil)
      #expect(book.value(forKey: "mood") == nil)
      context.redo()
      #expect(book.value(forKey: "notes") as? [String] == ["a"])
    }
  }

  @Test("One-to-many relationships are restored on both sides")
  func oneToMany() throws {
    try world { _, context, manager in
      manager.disableUndoRegistration()
      let ada = Reader(context: context)
      ada.name = "Ada"
      let eve = Reader(context: context)
      eve.name = "Eve"
      let book = Book(context: context)
      book.loanedTo = ada
      try context.save()
      manager.enableUndoRegistration()
      manager.step { book.loanedTo = eve }
      #expect(ada.loans.isEmpty)
      context.undo()
      #expect(book.loanedTo === ada)
      #expect(ada.loans == [book])
      #expect(eve.loans.isEmpty)
      context.redo()
      #expect(book.loanedTo === eve)
      #expect(eve.loans == [book])
      try context.save()
      context.reset()
      let found = try context.fetch(NSFetchRequest<Book>(entityName: "Book"))
      #expect(found.first?.loanedTo?.name == "Eve")
    }
  }

  @Test("Many-to-many relationships are restored on both sides, also after a save")
  func manyToMany() throws {
    try world { library, context, manager in
      manager.disableUndoRegistration()
      let book = Book(context: context)
      let sea = Subject(context: context)
      let sky = Subject(context: context)
      book.subjects = [sea]
      try context.save()
      manager.enableUndoRegistration()
      manager.step { book.subjects = [sky] }
      try context.save()
      context.undo()
      #expect(book.subjects == [sea])
      #expect(sea.value(forKey: "books") as? Set<Book> == [book])
      #expect(sky.value(forKey: "books") as? Set<Book> == [])
      try context.save()
      let other = library.context()
      try other.performAndWait {
        let found = try other.fetch(NSFetchRequest<Book>(entityName: "Book"))
        #expect(found.first?.subjects.map(\.objectID) == [sea.objectID])
      }
    }
  }

  @Test("The order of an ordered relationship is restored")
  func ordered() throws {
    try world { _, context, manager in
      manager.disableUndoRegistration()
      let book = Book(context: context)
      let chapters = (0..<4).map { number in
        let chapter = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
        chapter.setValue("\(number)", forKey: "heading")
        return chapter
      }
      book.setValue(NSOrderedSet(array: Array(chapters.prefix(3))), forKey: "chapters")
      try context.save()
      manager.enableUndoRegistration()
      func headings() -> String {
        let set = book.value(forKey: "chapters") as? NSOrderedSet
        return set?.compactMap { ($0 as? NSManagedObject)?.value(forKey: "heading") as? String }
          .joined() ?? ""
      }
      manager.step {
        let set = book.mutableOrderedSetValue(forKey: "chapters")
        set.removeObject(at: 1)
        set.insert(chapters[3], at: 0)
      }
      #expect(headings() == "302")
      manager.step {
        book.mutableOrderedSetValue(forKey: "chapters").exchangeObject(at: 0, withObjectAt: 2)
      }
      #expect(headings() == "203")
      context.undo()
      #expect(headings() == "302")
      context.undo()
      #expect(headings() == "012")
      #expect(chapters[1].value(forKey: "book") as? Book === book)
      #expect(chapters[3].value(forKey: "book") == nil)
      context.redo()
      context.redo()
      #expect(headings() == "203")
      try context.save()
      context.undo()
      try context.save()
      context.refreshAllObjects()
      #expect(headings() == "302")
    }
  }

  @Test("Undoing a deletion restores the same object, its relationships and cascaded objects")
  func deletion() throws {
    try world { _, context, manager in
      manager.disableUndoRegistration()
      let reader = Reader(context: context)
      reader.name = "Ada"
      let card = Card(context: context)
      card.number = "1"
      reader.card = card
      let book = Book(context: context)
      book.loanedTo = reader
      try context.save()
      manager.enableUndoRegistration()
      let identifier = reader.objectID
      manager.step { context.delete(reader) }
      #expect(book.loanedTo == nil)
      context.undo()
      #expect(!reader.isDeleted)
      #expect(!card.isDeleted)
      #expect(reader.objectID == identifier)
      #expect(book.loanedTo === reader)
      #expect(reader.loans == [book])
      #expect(reader.card === card)
      #expect(reader.name == "Ada")
      #expect(context.deletedObjects.isEmpty)
      context.redo()
      #expect(reader.isDeleted)
      #expect(book.loanedTo == nil)
      context.undo()
      try context.save()
      try #expect(context.count(for: NSFetchRequest<Reader>(entityName: "Reader")) == 1)
    }
  }

  @Test("Undoing a saved deletion inserts the object again, with its identifier")
  func savedDeletion() throws {
    try world { library, context, manager in
      manager.disableUndoRegistration()
      let reader = Reader(context: context)
      reader.name = "Ada"
      let book = Book(context: context)
      book.loanedTo = reader
      let sea = Subject(context: context)
      book.subjects = [sea]
      try context.save()
      let identifiers = [reader.objectID, book.objectID]
      manager.enableUndoRegistration()
      manager.step {
        context.delete(book)
        context.delete(reader)
      }
      try context.save()
      #expect(book.managedObjectContext == nil)
      context.undo()
      #expect(context.insertedObjects == [reader, book])
      #expect([reader.objectID, book.objectID] == identifiers)
      try context.save()
      let other = library.context()
      try other.performAndWait {
        let found = try #require(try other.existingObject(with: identifiers[1]) as? Book)
        #expect(found.loanedTo?.name == "Ada")
        #expect(found.subjects.count == 1)
      }
      context.redo()
      try context.save()
      try #expect(context.count(for: NSFetchRequest<Book>(entityName: "Book")) == 0)
    }
  }

  @Test("Undo works across a save, and undoing a saved insertion deletes the object")
  func acrossSaves() throws {
    try world { library, context, manager in
      var made: Reader?
      manager.step {
        made = Reader(context: context)
        made?.name = "Ada"
      }
      try context.save()
      let reader = try #require(made)
      manager.step { reader.name = "Eve" }
      try context.save()
      context.undo()
      #expect(reader.name == "Ada")
      #expect(context.updatedObjects == [reader])
      try context.save()
      context.undo()
      #expect(context.deletedObjects == [reader])
      try context.save()
      let other = library.context()
      try other.performAndWait {
        try #expect(other.count(for: NSFetchRequest<Reader>(entityName: "Reader")) == 0)
      }
    }
  }

  @Test("processPendingChanges ends an operation; changes without registration are kept")
  func boundaries() throws {
    try world { _, context, manager in
      manager.disableUndoRegistration()
      let reader = Reader(context: context)
      reader.name = "Base"
      context.processPendingChanges()
      manager.enableUndoRegistration()
      manager.step {
        reader.name = "Ada"
        context.processPendingChanges()
        manager.disableUndoRegistration()
        reader.age = 33
        context.processPendingChanges()
        manager.enableUndoRegistration()
      }
      context.undo()
      #expect(reader.name == "Base")
      #expect(reader.age == 33)
    }
  }

  @Test("After a rollback or a reset there is nothing to undo")
  func rollback() throws {
    try world { _, context, manager in
      manager.step { _ = Reader(context: context) }
      #expect(manager.canUndo)
      context.rollback()
      #expect(!manager.canUndo)
      manager.step { _ = Reader(context: context) }
      context.reset()
      #expect(!manager.canUndo)
    }
  }

  @Test("Undoing notifies observers and objects")
  func notification() throws {
    try world { _, context, manager in
      manager.disableUndoRegistration()
      let reader = Reader(context: context)
      let doomed = Reader(context: context)
      try context.save()
      manager.enableUndoRegistration()
      manager.step {
        reader.name = "Ada"
        context.delete(doomed)
      }
      let notes = NoteCollector(context)
      context.undo()
      #expect(notes.names == ["ObjectsDidChange"])
      #expect(notes.objects("ObjectsDidChange", NSUpdatedObjectsKey) == [reader])
      #expect(notes.objects("ObjectsDidChange", NSInsertedObjectsKey) == [doomed])
    }
  }

  @Test("Changes of others that this context merged are not undone")
  func merged() throws {
    try world { library, context, manager in
      manager.disableUndoRegistration()
      let reader = Reader(context: context)
      reader.name = "Ada"
      try context.save()
      manager.enableUndoRegistration()
      manager.step { reader.age = 33 }
      let other = library.context()
      let identifier = reader.objectID
      try other.performAndWait {
        (try other.existingObject(with: identifier) as? Reader)?.name = "Eve"
        try other.save()
      }
      context.refresh(reader, mergeChanges: true)
      manager.step { reader.age = 34 }
      context.undo()
      #expect(reader.age == 33)
      #expect(reader.name == "Eve")
      context.undo()
      #expect(reader.age == 18)
      #expect(reader.name == "Eve")
    }
  }

  @Test("A child context undoes its own changes, also those saved into its parent")
  func child() throws {
    let library = try Library(inMemory: true)
    let parent = library.context()
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = parent
    try child.performAndWait {
      let manager = UndoManager.manual()
      child.undoManager = manager
      var made: Reader?
      manager.step {
        made = Reader(context: child)
        made?.name = "Ada"
      }
      try child.save()
      let reader = try #require(made)
      manager.step { reader.name = "Eve" }
      try child.save()
      child.undo()
      try child.save()
      parent.performAndWait {
        #expect(parent.insertedObjects.first?.value(forKey: "name") as? String == "Ada")
      }
      manager.step { child.delete(reader) }
      try child.save()
      child.undo()
      try child.save()
    }
    try parent.performAndWait {
      try parent.save()
      let found = try parent.fetch(NSFetchRequest<Reader>(entityName: "Reader"))
      #expect(found.map(\.name) == ["Ada"])
    }
  }
}
