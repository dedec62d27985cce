import Foundation
import OpenCoreData
import Testing

@Suite("Merges of rows that a context does not know, or knew before")
struct MergedInsertionTests {
  private let library: Library
  private let parent: NSManagedObjectContext
  private let writer: NSManagedObjectContext
  private let request = NSFetchRequest<Book>(entityName: "Book")

  init() throws {
    library = try Library(inMemory: true)
    parent = library.context()
    writer = library.context()
    request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
  }

  private func child() -> NSManagedObjectContext {
    let child = parent.child()
    child.automaticallyMergesChangesFromParent = true
    return child
  }

  /// Runs everything that is queued on the contexts' lanes.
  private func settle(_ contexts: NSManagedObjectContext...) {
    for context in contexts {
      context.performAndWait {}
      context.performAndWait {}
    }
  }

  /// Saves new books in the writer.
  private func write(_ titles: String...) throws -> [NSManagedObjectID] {
    try writer.performAndWait {
      let books = titles.map { title in
        let book = Book(context: writer)
        book.title = title
        return book
      }
      try writer.save()
      return books.map(\.objectID)
    }
  }

  /// A list of all books of a context, or of those that a predicate selects.
  private func follow(
    _ context: NSManagedObjectContext,
    _ recorder: FetchedResultsRecorder,
    predicate: NSPredicate? = nil,
    limit: Int = 0
  ) throws -> NSFetchedResultsController<Book> {
    try context.performAndWait {
      request.predicate = predicate
      request.fetchLimit = limit
      let results = NSFetchedResultsController(
        fetchRequest: request,
        managedObjectContext: context,
        sectionNameKeyPath: nil,
        cacheName: nil
      )
      results.delegate = recorder
      try results.performFetch()
      recorder.show(results)
      return results
    }
  }

  private func merge(
    _ key: String,
    _ identifiers: [NSManagedObjectID],
    into context: NSManagedObjectContext
  ) {
    NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [key: identifiers], into: [context])
  }

  @Test(
    "The insertion of a row that was deleted since makes no object",
    arguments: [false, true]
  )
  func vanished(isChild: Bool) throws {
    let viewer = isChild ? child() : parent
    let notes = NoteCollector(viewer)
    let recorder = FetchedResultsRecorder()
    let results = try follow(viewer, recorder)
    let identifiers = try write("doomed", "kept")
    try writer.performAndWait {
      writer.delete(writer.object(with: identifiers[0]))
      try writer.save()
    }
    merge(NSInsertedObjectIDsKey, identifiers, into: viewer)
    viewer.performAndWait {
      let inserted = notes.objects("ObjectsDidChange", NSInsertedObjectsKey)
      #expect(inserted?.map(\.objectID) == [identifiers[1]])
      #expect(recorder.log == ["will", "insert kept - 0.0", "did"])
      #expect(results.fetchedObjects?.map(\.title) == ["kept"])
      #expect(!viewer.hasChanges)
    }
  }

  @Test(
    "An object that was read before its insertion was merged enters lists and relationships",
    arguments: [false, true]
  )
  func known(isChild: Bool) throws {
    let viewer = isChild ? child() : parent
    let recorder = FetchedResultsRecorder()
    let results = try follow(viewer, recorder)
    let readerID = try writer.performAndWait {
      let reader = Reader(context: writer)
      reader.name = "Ada"
      try writer.save()
      return reader.objectID
    }
    let reader = try viewer.performAndWait {
      let reader = try #require(try viewer.existingObject(with: readerID) as? Reader)
      #expect(reader.loans.isEmpty)
      return reader
    }
    let bookID = try writer.performAndWait {
      let book = Book(context: writer)
      book.title = "new"
      book.loanedTo = writer.object(with: readerID) as? Reader
      try writer.save()
      return book.objectID
    }
    let book = try viewer.performAndWait {
      try #require(try viewer.existingObject(with: bookID) as? Book)
    }
    merge(NSInsertedObjectIDsKey, [bookID], into: viewer)
    viewer.performAndWait {
      #expect(recorder.log == ["will", "insert new - 0.0", "did"])
      #expect(results.fetchedObjects == [book])
      #expect(reader.loans == [book])
      #expect(!viewer.hasChanges)
    }
    // The list has it now, and its values are the same.
    merge(NSInsertedObjectIDsKey, [bookID], into: viewer)
    viewer.performAndWait { #expect(recorder.log.count == 3) }
  }

  @Test("A child that merges automatically adds an imported row to a loaded relationship")
  func importedMember() throws {
    let child = child()
    let readerID = try writer.performAndWait {
      let reader = Reader(context: writer)
      reader.name = "Ada"
      Book(context: writer).loanedTo = reader
      try writer.save()
      return reader.objectID
    }
    let readers = try [parent, child].map { context in
      try context.performAndWait {
        let reader = try #require(try context.existingObject(with: readerID) as? Reader)
        #expect(reader.loans.count == 1)
        return reader
      }
    }
    let bookID = try writer.performAndWait {
      let book = Book(context: writer)
      book.loanedTo = writer.object(with: readerID) as? Reader
      try writer.save()
      return book.objectID
    }
    // An import and a history transaction name the row alone, not its owner.
    merge(NSInsertedObjectIDsKey, [bookID], into: parent)
    settle(child)
    parent.performAndWait { #expect(readers[0].loans.count == 2) }
    child.performAndWait { #expect(readers[1].loans.count == 2) }
  }

  @Test("A child sees changes and deletions of rows that its parent has no objects of")
  func rowsUnknownToParent() throws {
    parent.automaticallyMergesChangesFromParent = true
    let child = child()
    let identifiers = try write("changed", "doomed")
    settle(parent, child)
    let books = try child.performAndWait {
      let books = try child.fetch(request)
      #expect(books.map(\.title) == ["changed", "doomed"])
      return books
    }
    parent.performAndWait { #expect(parent.registeredObjects.isEmpty) }
    try writer.performAndWait {
      (writer.object(with: identifiers[0]) as? Book)?.title = "other"
      writer.delete(writer.object(with: identifiers[1]))
      try writer.save()
    }
    settle(parent, child)
    child.performAndWait {
      #expect(books[0].title == "other")
      #expect(books[1].managedObjectContext == nil)
    }
  }

  @Test(
    "A list takes an object that begins to match by another context's change",
    arguments: [false, true]
  )
  func beginsToMatch(isChild: Bool) throws {
    let viewer = isChild ? child() : parent
    let recorder = FetchedResultsRecorder()
    let identifiers = try write("a", "b", "c")
    let results = try follow(viewer, recorder, predicate: NSPredicate(format: "pages > 10"))
    try writer.performAndWait {
      (writer.object(with: identifiers[1]) as? Book)?.pages = 11
      (writer.object(with: identifiers[2]) as? Book)?.pages = 10
      try writer.save()
    }
    merge(NSUpdatedObjectIDsKey, identifiers, into: viewer)
    viewer.performAndWait {
      #expect(recorder.log == ["will", "insert b - 0.0", "did"])
      #expect(results.fetchedObjects?.map(\.title) == ["b"])
      #expect(!viewer.hasChanges)
    }
  }

  @Test("A list with a limit takes an object that another context's change moved into it")
  func movesIntoLimit() throws {
    let recorder = FetchedResultsRecorder()
    let identifiers = try write("b", "c", "d")
    let results = try follow(parent, recorder, limit: 2)
    try writer.performAndWait {
      (writer.object(with: identifiers[2]) as? Book)?.title = "a"
      try writer.save()
    }
    merge(NSUpdatedObjectIDsKey, [identifiers[2]], into: parent)
    parent.performAndWait {
      #expect(recorder.log == ["will", "delete c 0.1 -", "insert a - 0.0", "did"])
      #expect(results.fetchedObjects?.map(\.title) == ["a", "b"])
    }
  }
}
