import Foundation
import OpenCoreData
import Testing

@Suite("Merging between contexts")
struct MergingTests {
  /// Runs everything that is queued on the context's lane.
  private func settle(_ context: NSManagedObjectContext) {
    context.performAndWait {}
    context.performAndWait {}
  }

  @Test("A context that merges automatically sees another's inserts, changes and deletions")
  func automatic() throws {
    let library = try Library()
    let viewer = library.context()
    viewer.automaticallyMergesChangesFromParent = true
    let notes = NoteCollector(viewer)
    let writer = library.context()
    try writer.performAndWait {
      let reader = Reader(context: writer)
      reader.name = "Ada"
      try writer.save()
    }
    settle(viewer)
    #expect(notes.objects("ObjectsDidChange", NSInsertedObjectsKey)?.count == 1)
    let reader = try viewer.performAndWait {
      try #require(try viewer.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first)
    }
    viewer.performAndWait { #expect(reader.name == "Ada") }

    try writer.performAndWait {
      let reader = try #require(
        try writer.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first
      )
      reader.name = "Eve"
      Book(context: writer).loanedTo = reader
      try writer.save()
    }
    settle(viewer)
    viewer.performAndWait {
      #expect(reader.name == "Eve")
      #expect(reader.loans.count == 1)
      #expect(!viewer.hasChanges)
    }

    try writer.performAndWait {
      for reader in try writer.fetch(NSFetchRequest<Reader>(entityName: "Reader")) {
        writer.delete(reader)
      }
      try writer.save()
    }
    settle(viewer)
    viewer.performAndWait {
      #expect(notes.objects("ObjectsDidChange", NSDeletedObjectsKey) == [reader])
      #expect(reader.managedObjectContext == nil)
    }
  }

  @Test("Unsaved changes are kept when changes of others are merged")
  func pendingChangesStay() throws {
    let library = try Library()
    let mine = library.context()
    let theirs = library.context()
    try mine.performAndWait {
      let reader = Reader(context: mine)
      reader.name = "Base"
      try mine.save()
      reader.age = 50
      let token = NotificationCenter.default.addObserver(
        forName: .NSManagedObjectContextDidSave,
        object: theirs,
        queue: nil
      ) { note in mine.mergeChanges(fromContextDidSave: note) }
      defer { NotificationCenter.default.removeObserver(token) }
      try theirs.performAndWait {
        try theirs.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first?.name = "Theirs"
        try theirs.save()
      }
      #expect(reader.name == "Theirs")
      #expect(reader.age == 50)
      try mine.save()
    }
    let check = library.context()
    try check.performAndWait {
      let reader = try check.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first
      #expect(reader?.name == "Theirs")
      #expect(reader?.age == 50)
    }
  }

  @Test("Changes of others are merged by identifiers or URLs")
  func remote() throws {
    let library = try Library()
    let viewer = library.context()
    let reader = try viewer.performAndWait {
      let reader = Reader(context: viewer)
      reader.name = "Ada"
      try viewer.save()
      return reader
    }
    let other = try library.reopened().newBackgroundContext()
    let url = try other.performAndWait {
      let reader = try #require(try other.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first)
      reader.name = "Eve"
      try other.save()
      return reader.objectID.uriRepresentation()
    }
    NSManagedObjectContext.mergeChanges(
      fromRemoteContextSave: [NSUpdatedObjectsKey: [url]],
      into: [viewer]
    )
    viewer.performAndWait { #expect(reader.name == "Eve") }
  }

  @Test("Commits that no context made are merged too")
  func rowCommits() throws {
    let library = try Library()
    let viewer = library.context()
    viewer.automaticallyMergesChangesFromParent = true
    let reader = try viewer.performAndWait {
      let reader = Reader(context: viewer)
      reader.name = "Ada"
      try viewer.save()
      #expect(reader.loans.isEmpty)
      return reader
    }
    let store = try #require(library.container.persistentStoreCoordinator.sqliteStore())
    let reference = try #require(reader.objectID.reference)
    let layout = reader.entity.layout
    guard case .attribute(let name)? = layout.slot(named: "name") else {
      Issue.record("The layout has no name.")
      return
    }
    _ = try store.write(author: "import", contextName: nil) { transaction in
      try transaction.update(reference, set: [name: .string("Eve")])
    }
    settle(viewer)
    viewer.performAndWait { #expect(reader.name == "Eve") }
  }

  /// A viewer in which a reader with three loans is registered, and the loans' identifiers.
  private func viewer(
    of library: Library
  ) throws -> (viewer: NSManagedObjectContext, reader: Reader, books: [NSManagedObjectID]) {
    let setup = library.context()
    let books = try setup.performAndWait {
      let reader = Reader(context: setup)
      let books = (0..<3).map { _ in Book(context: setup) }
      reader.loans = Set(books)
      let subject = Subject(context: setup)
      subject.books = Set(books)
      try setup.save()
      return books.map(\.objectID)
    }
    let viewer = library.context()
    let reader = try viewer.performAndWait {
      let found = try viewer.fetch(NSFetchRequest<Reader>(entityName: "Reader"))
      return try #require(found.first)
    }
    return (viewer, reader, books)
  }

  @Test("Members that a batch deleted are removed from loaded relationships when it is merged")
  func batchDeletion() throws {
    let library = try Library()
    let (viewer, reader, books) = try viewer(of: library)
    try viewer.performAndWait {
      let subject = try #require(
        try viewer.fetch(NSFetchRequest<Subject>(entityName: "Subject")).first
      )
      #expect(reader.loans.count == 3)
      #expect(subject.books.count == 3)
      try viewer.execute(NSBatchDeleteRequest(objectIDs: [books[0]]))
      NSManagedObjectContext.mergeChanges(
        fromRemoteContextSave: [NSDeletedObjectIDsKey: [books[0]]],
        into: [viewer]
      )
      #expect(reader.loans.count == 2)
      #expect(subject.books.count == 2)
      #expect(reader.loans.allSatisfy { $0.managedObjectContext === viewer })
    }
  }

  @Test("Merging an owner that another process deleted clears the to-ones of its members")
  func ownerDeletion() throws {
    let library = try Library()
    let (viewer, reader, books) = try viewer(of: library)
    try viewer.performAndWait {
      let held = books.compactMap { viewer.object(with: $0) as? Book }
      #expect(held.allSatisfy { $0.loanedTo === reader })
      let other = try library.reopened().newBackgroundContext()
      try other.performAndWait {
        for reader in try other.fetch(NSFetchRequest<Reader>(entityName: "Reader")) {
          other.delete(reader)
        }
        try other.save()
      }
      NSManagedObjectContext.mergeChanges(
        fromRemoteContextSave: [NSDeletedObjectIDsKey: [reader.objectID]],
        into: [viewer]
      )
      #expect(held.allSatisfy { $0.loanedTo == nil })
    }
  }

  @Test("A row that an import moves appears in its new owner's loaded members")
  func movedRow() throws {
    let library = try Library()
    let (viewer, reader, books) = try viewer(of: library)
    viewer.automaticallyMergesChangesFromParent = true
    let second = try viewer.performAndWait {
      let second = Reader(context: viewer)
      try viewer.save()
      #expect(second.loans.isEmpty)
      #expect(reader.isFault || reader.hasFault(forRelationshipNamed: "loans"))
      return second
    }
    let store = try #require(library.container.persistentStoreCoordinator.sqliteStore())
    let target = try #require(second.objectID.reference)
    let book = try #require(books[0].reference)
    guard case .toOne(let index)? = books[0].entity.layout.slot(named: "loanedTo"),
      let slot = books[0].entity.layout.toOnes[index].rowIndex
    else {
      Issue.record("The layout has no loanedTo.")
      return
    }
    try store.write(author: "import", contextName: nil) { transaction in
      try transaction.update(book, set: [slot: .reference(target)])
    }
    settle(viewer)
    viewer.performAndWait { #expect(second.loans.map(\.objectID) == [books[0]]) }
  }

  @Test("A commit of another coordinator is noticed by the first fetch after the opening")
  func firstFetch() throws {
    let library = try Library()
    let setup = library.context()
    let url = try setup.performAndWait {
      let reader = Reader(context: setup)
      reader.name = "Ada"
      try setup.save()
      return reader.objectID.uriRepresentation()
    }
    let second = try library.reopened()
    let viewer = second.newBackgroundContext()
    let identifier = try #require(
      second.persistentStoreCoordinator.managedObjectID(forURIRepresentation: url)
    )
    let reader = try viewer.performAndWait {
      let reader = try #require(viewer.object(with: identifier) as? Reader)
      #expect(reader.name == "Ada")
      return reader
    }
    try setup.performAndWait {
      try setup.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first?.name = "Eve"
      try setup.save()
    }
    try viewer.performAndWait {
      let request = NSFetchRequest<Reader>(entityName: "Reader")
      request.shouldRefreshRefetchedObjects = true
      _ = try viewer.fetch(request)
      viewer.refresh(reader, mergeChanges: false)
      #expect(reader.name == "Eve")
    }
  }

  @Test("An unsaved order is kept when another context's member is merged")
  func pendingOrder() throws {
    let library = try Library()
    let mine = library.context()
    func headings(_ book: Book) -> [String] {
      (book.value(forKey: "chapters") as? NSOrderedSet)?.array.compactMap {
        ($0 as? NSManagedObject)?.value(forKey: "heading") as? String
      } ?? []
    }
    let book = try mine.performAndWait {
      let book = Book(context: mine)
      book.setValue(
        NSOrderedSet(array: ["1", "2", "3"].map { mine.insert("Chapter", ["heading": $0]) }),
        forKey: "chapters"
      )
      try mine.save()
      book.mutableOrderedSetValue(forKey: "chapters").moveObjects(at: IndexSet(integer: 2), to: 0)
      #expect(headings(book) == ["3", "1", "2"])
      return book
    }
    let identifier = book.objectID
    let theirs = library.context()
    nonisolated(unsafe) var note: Notification?
    let token = NotificationCenter.default.addObserver(
      forName: .NSManagedObjectContextDidSave,
      object: theirs,
      queue: nil
    ) { note = $0 }
    defer { NotificationCenter.default.removeObserver(token) }
    try theirs.performAndWait {
      theirs.insert("Chapter", ["heading": "4"]).setValue(
        theirs.object(with: identifier),
        forKey: "book"
      )
      try theirs.save()
    }
    mine.mergeChanges(fromContextDidSave: try #require(note))
    try mine.performAndWait {
      #expect(headings(book) == ["3", "4", "1", "2"])
      try mine.save()
      mine.refresh(book, mergeChanges: false)
      #expect(headings(book) == ["3", "4", "1", "2"])
    }
  }

  @Test("Merged deletions remove members from an ordered relationship and keep the others' order")
  func orderedDeletions() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let book = Book(context: context)
      let chapters = (0..<100).map { _ in
        NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      }
      book.setValue(NSOrderedSet(array: chapters), forKey: "chapters")
      try context.save()
      let gone = chapters.indices.filter { $0 % 3 != 0 }.map { chapters[$0] }
      let request = NSBatchDeleteRequest(objectIDs: gone.map(\.objectID))
      try context.execute(request)
      NSManagedObjectContext.mergeChanges(
        fromRemoteContextSave: [NSDeletedObjectIDsKey: gone.map(\.objectID)],
        into: [context]
      )
      let left = (book.value(forKey: "chapters") as? NSOrderedSet)?.array as? [NSManagedObject]
      #expect(left == chapters.indices.filter { $0 % 3 == 0 }.map { chapters[$0] })
      #expect(!context.hasChanges)
    }
  }

  @Test("An insertion whose row was deleted since is not merged")
  func insertionOfDeleted() throws {
    let library = try Library()
    let writer = library.context()
    let notes = NoteCollector(writer)
    try writer.performAndWait {
      let reader = Reader(context: writer)
      try writer.save()
      writer.delete(reader)
    }
    let insertion = Notification(
      name: .NSManagedObjectContextDidSave,
      object: writer,
      userInfo: notes.userInfo("DidSaveObjectIDs")
    )
    try writer.performAndWait { try writer.save() }
    let viewer = library.context()
    try viewer.performAndWait {
      let request = NSFetchRequest<Reader>(entityName: "Reader")
      request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
      let results = NSFetchedResultsController(
        fetchRequest: request,
        managedObjectContext: viewer,
        sectionNameKeyPath: nil,
        cacheName: nil
      )
      let recorder = FetchedResultsRecorder()
      results.delegate = recorder
      try results.performFetch()
      let merged = NoteCollector(viewer)
      viewer.mergeChanges(fromContextDidSave: insertion)
      #expect(results.fetchedObjects?.isEmpty == true)
      #expect(recorder.log.isEmpty)
      #expect(merged.names.isEmpty)
      #expect(viewer.registeredObjects.isEmpty)
      #expect(!viewer.hasChanges)
    }
  }

  @Test("A child that merges automatically sees the members that a merge brings to its parent")
  func membersOfChild() throws {
    let library = try Library()
    let writer = library.context()
    let parent = library.context()
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = parent
    parent.automaticallyMergesChangesFromParent = true
    child.automaticallyMergesChangesFromParent = true
    let reader = try writer.performAndWait {
      let reader = Reader(context: writer)
      reader.name = "Ada"
      Book(context: writer).loanedTo = reader
      try writer.save()
      return reader.objectID
    }
    settle(parent)
    settle(child)
    let shown = try child.performAndWait {
      let shown = try #require(try child.existingObject(with: reader) as? Reader)
      #expect(shown.loans.count == 1)
      return shown
    }
    // As an import and a batch report it: the new row alone.
    parent.automaticallyMergesChangesFromParent = false
    let book = try writer.performAndWait {
      let book = Book(context: writer)
      book.loanedTo = writer.object(with: reader) as? Reader
      try writer.save()
      return book.objectID
    }
    NSManagedObjectContext.mergeChanges(
      fromRemoteContextSave: [NSInsertedObjectIDsKey: [book]],
      into: [parent]
    )
    settle(child)
    child.performAndWait { #expect(shown.loans.count == 2) }
  }
}
