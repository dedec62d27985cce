import Foundation
import OpenCoreData
import Testing

@Suite("Deleting")
struct DeletingTests {
  @Test("Nullify removes the object from its inverses; cascade deletes its destinations")
  func rules() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      let card = Card(context: context)
      reader.card = card
      let book = Book(context: context)
      book.loanedTo = reader
      let chapter = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      chapter.setValue(book, forKey: "book")
      let subject = Subject(context: context)
      book.subjects = [subject]
      try context.save()

      context.delete(reader)
      context.processPendingChanges()
      #expect(card.isDeleted)
      #expect(book.loanedTo == nil)
      #expect(book.isUpdated)
      #expect(reader.calls.contains("prepareForDeletion"))
      try context.save()
      context.delete(book)
      try context.save()
      #expect(subject.books.isEmpty)
    }
    try #expect(counts(library) == ["Reader": 0, "Card": 0, "Book": 0, "Chapter": 0, "Subject": 1])
  }

  private func counts(_ library: Library) throws -> [String: Int] {
    let context = try library.reopened().newBackgroundContext()
    return try context.performAndWait {
      var result: [String: Int] = [:]
      for name in ["Reader", "Card", "Book", "Chapter", "Subject"] {
        result[name] = try context.count(for: NSFetchRequest<NSManagedObject>(entityName: name))
      }
      return result
    }
  }

  @Test("Delete rules apply to objects that were never loaded")
  func unloaded() throws {
    let library = try Library()
    let setup = library.context()
    try setup.performAndWait {
      for _ in 0..<5 {
        let book = Book(context: setup)
        for _ in 0..<3 {
          NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: setup)
            .setValue(book, forKey: "book")
        }
        book.subjects = [Subject(context: setup)]
      }
      try setup.save()
    }
    let context = library.context()
    try context.performAndWait {
      for book in try context.fetch(NSFetchRequest<Book>(entityName: "Book")).prefix(3) {
        context.delete(book)
      }
      try context.save()
    }
    try #expect(counts(library) == ["Reader": 0, "Card": 0, "Book": 2, "Chapter": 6, "Subject": 5])
    let again = library.context()
    try again.performAndWait {
      let subjects = try again.fetch(NSFetchRequest<Subject>(entityName: "Subject"))
      #expect(subjects.map(\.books.count).sorted() == [0, 0, 0, 1, 1])
    }
  }

  @Test("An object that is deleted before it was saved is not written")
  func unsaved() throws {
    let library = try Library()
    let context = library.context()
    let notes = NoteCollector(context)
    try context.performAndWait {
      let reader = Reader(context: context)
      let book = Book(context: context)
      book.loanedTo = reader
      context.delete(reader)
      try context.save()
      #expect(book.loanedTo == nil)
      #expect(reader.managedObjectContext == nil)
      for name in ["ObjectsDidChange", "DidSave"] {
        #expect(notes.objects(name, NSInsertedObjectsKey) == [book])
      }
      #expect(notes.objects("ObjectsDidChange", NSDeletedObjectsKey) == [reader])
      #expect(notes.objects("DidSave", NSDeletedObjectsKey) == nil)
    }
  }

  @Test("Objects that a cascade deleted are freed once the deletion is saved")
  func cascadeIsFreed() throws {
    let library = try Library()
    let context = library.context()
    weak var weakBook: NSManagedObject?
    weak var weakChapter: NSManagedObject?
    try context.performAndWait {
      let book = Book(context: context)
      let chapter = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      chapter.setValue(book, forKey: "book")
      try context.save()
      context.delete(book)
      try context.save()
      (weakBook, weakChapter) = (book, chapter)
    }
    context.performAndWait { context.reset() }
    #expect(weakBook == nil)
    #expect(weakChapter == nil)
  }

  @Test("Objects whose deletion is merged are freed")
  func mergedDeletionIsFreed() throws {
    let library = try Library()
    let context = library.context()
    weak var weakBook: NSManagedObject?
    weak var weakChapter: NSManagedObject?
    try context.performAndWait {
      let book = Book(context: context)
      let chapter = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      chapter.setValue(book, forKey: "book")
      try context.save()
      let other = library.context()
      try other.performAndWait {
        other.delete(other.object(with: book.objectID))
        try other.save()
      }
      NSManagedObjectContext.mergeChanges(
        fromRemoteContextSave: [NSDeletedObjectIDsKey: [book.objectID, chapter.objectID]],
        into: [context]
      )
      #expect(book.managedObjectContext == nil)
      (weakBook, weakChapter) = (book, chapter)
    }
    context.performAndWait { context.reset() }
    #expect(weakBook == nil)
    #expect(weakChapter == nil)
  }

  @Test("Objects whose saved deletion can no longer be undone are freed")
  func undoIsForgotten() throws {
    let library = try Library()
    let context = library.context()
    weak var weakBook: NSManagedObject?
    weak var weakChapter: NSManagedObject?
    try context.performAndWait {
      let manager = UndoManager.manual()
      let book = Book(context: context)
      let chapter = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      chapter.setValue(book, forKey: "book")
      try context.save()
      context.undoManager = manager
      manager.beginUndoGrouping()
      context.delete(book)
      manager.endUndoGrouping()
      try context.save()
      (weakBook, weakChapter) = (book, chapter)
      context.undo()
      #expect(book.managedObjectContext === context)
      context.redo()
      try context.save()
      manager.removeAllActions()
    }
    context.performAndWait { context.reset() }
    #expect(weakBook == nil)
    #expect(weakChapter == nil)
  }
}
