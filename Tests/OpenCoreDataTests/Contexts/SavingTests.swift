import Foundation
import OpenCoreData
import Testing

@Suite("Saving")
struct SavingTests {
  @Test("One container reads every value that another container saved")
  func endToEnd() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      reader.name = "Ada"
      reader.age = 36
      let card = Card(context: context)
      card.number = "C-1"
      reader.card = card
      let book = Book(context: context)
      book.title = "Notes"
      book.pages = 66
      book.loanedTo = reader
      let subject = Subject(context: context)
      subject.name = "Engines"
      subject.books = [book]
      try context.save()
      #expect(!context.hasChanges)
      #expect(!book.objectID.isTemporaryID)
    }

    let again = try library.reopened().newBackgroundContext()
    try again.performAndWait {
      let request: NSFetchRequest<Book> = Book.fetchRequest()
      let books = try again.fetch(request)
      let book = try #require(books.first)
      #expect(books.count == 1)
      #expect(book.title == "Notes")
      #expect(book.pages == 66)
      #expect(book.loanedTo?.name == "Ada")
      #expect(book.loanedTo?.age == 36)
      #expect(book.loanedTo?.card?.number == "C-1")
      #expect(book.loanedTo?.card?.reader === book.loanedTo)
      #expect(book.subjects.map(\.name) == ["Engines"])
      #expect(book.subjects.first?.books == [book])
      #expect(book.loanedTo?.loans == [book])
    }
  }

  @Test(
    "willSave and didSave are called around a save, and willSave again when it changes the object"
  )
  func hooks() throws {
    final class Count { var value = 0 }
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      #expect(reader.calls == ["awakeFromInsert"])
      reader.name = "Ada"
      try context.save()
      #expect(reader.calls == ["awakeFromInsert", "willSave", "didSave"])
      context.refresh(reader, mergeChanges: false)
      #expect(reader.calls.last == "willTurnIntoFault")
      #expect(reader.isFault)
      _ = reader.name
      #expect(reader.calls.last == "awakeFromFetch")
      #expect(!reader.isFault)
      #expect(!context.hasChanges)
    }
  }

  @Test("An object that is set to its former values is saved without a new version")
  func unchangedValues() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      reader.name = "Ada"
      try context.save()
      let before = try history(context)
      reader.name = "Ada"
      #expect(reader.isUpdated)
      #expect(!reader.hasPersistentChangedValues)
      #expect(reader.changedValues().isEmpty)
      try context.save()
      try #expect(history(context) == before)
      reader.name = "Grace"
      #expect(reader.changedValues()["name"] as? String == "Grace")
      #expect(reader.committedValues(forKeys: ["name"])["name"] as? String == "Ada")
      try context.save()
      try #expect(history(context) == before + 1)
    }
  }

  private func history(_ context: NSManagedObjectContext) throws -> Int {
    let request = NSPersistentHistoryChangeRequest.fetchHistory(
      after: nil as NSPersistentHistoryToken?
    )
    let result = try context.execute(request) as? NSPersistentHistoryResult
    return (result?.result as? [NSPersistentHistoryTransaction])?.count ?? 0
  }

  @Test("A save posts the objects and their identifiers")
  func notifications() throws {
    let library = try Library()
    let context = library.context()
    let notes = NoteCollector(context)
    try context.performAndWait {
      let reader = Reader(context: context)
      try context.save()
      #expect(notes.names == ["ObjectsDidChange", "WillSave", "DidSave", "DidSaveObjectIDs"])
      #expect(notes.objects("DidSave", NSInsertedObjectsKey) == [reader])
      #expect(notes.identifiers("DidSaveObjectIDs", NSInsertedObjectIDsKey) == [reader.objectID])
      notes.clear()
      reader.age = 40
      try context.save()
      #expect(notes.objects("ObjectsDidChange", NSUpdatedObjectsKey) == [reader])
      #expect(notes.objects("DidSave", NSUpdatedObjectsKey) == [reader])
      notes.clear()
      context.delete(reader)
      try context.save()
      #expect(notes.objects("DidSave", NSDeletedObjectsKey) == [reader])
      #expect(reader.managedObjectContext == nil)
    }
  }

  @Test("Identifiers are temporary until the save, and their URLs identify the object")
  func identifiers() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let book = Book(context: context)
      let temporary = book.objectID
      #expect(temporary.isTemporaryID)
      #expect(context.object(with: temporary) === book)
      try context.obtainPermanentIDs(for: [book])
      let permanent = book.objectID
      #expect(!permanent.isTemporaryID)
      #expect(book.isInserted)
      try context.save()
      #expect(book.objectID == permanent)
      let url = permanent.uriRepresentation()
      #expect(url.scheme == "x-coredata")
      #expect(url.lastPathComponent == "p1")
      let coordinator = library.container.persistentStoreCoordinator
      #expect(coordinator.managedObjectID(forURIRepresentation: url) == permanent)
      #expect(permanent.persistentStore === coordinator.persistentStores.first)
      #expect(context.registeredObject(for: permanent) === book)
    }
    let other = library.context()
    try other.performAndWait {
      let book = try #require(try other.fetch(NSFetchRequest<Book>(entityName: "Book")).first)
      try #expect(other.existingObject(with: book.objectID) === book)
      let gone = library.container.persistentStoreCoordinator.managedObjectID(
        forURIRepresentation: try #require(
          URL(
            string: book.objectID.uriRepresentation().deletingLastPathComponent().absoluteString
              + "p99"
          )
        )
      )
      #expect(throws: (any Error).self) { try other.existingObject(with: try #require(gone)) }
    }
  }

  @Test("Saving a relationship to an object without a context fails")
  func danglingReference() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let book = Book(context: context)
      let entity = try #require(NSEntityDescription.entity(forEntityName: "Reader", in: context))
      let reader = Reader(entity: entity, insertInto: nil)
      book.loanedTo = reader
      #expect(throws: (any Error).self) { try context.save() }
      #expect(book.isInserted)
      context.insert(reader)
      try context.save()
      #expect(book.loanedTo === reader)
    }
  }
}

/// Collects the notifications of a context.
final class NoteCollector: @unchecked Sendable {
  // Sendable: notifications are delivered on the posting thread, under the lock.
  private let lock = NSLock()
  private var notes: [Notification] = []
  private var tokens: [any NSObjectProtocol] = []
  private static let all: [(Notification.Name, String)] = [
    (.NSManagedObjectContextObjectsDidChange, "ObjectsDidChange"),
    (.NSManagedObjectContextWillSave, "WillSave"),
    (.NSManagedObjectContextDidSave, "DidSave"),
    (.NSManagedObjectContextDidSaveObjectIDs, "DidSaveObjectIDs"),
    (.NSManagedObjectContextDidMergeChangesObjectIDs, "DidMergeChangesObjectIDs"),
  ]

  init(_ context: NSManagedObjectContext) {
    for (name, _) in Self.all {
      tokens.append(
        NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) {
          [weak self] note in
          guard let self else { return }
          let kept = note
          lock.withLock { notes.append(kept) }
        }
      )
    }
  }

  deinit {
    for token in tokens { NotificationCenter.default.removeObserver(token) }
  }

  func clear() { lock.withLock { notes = [] } }

  var names: [String] {
    lock.withLock { notes }.compactMap { note in
      Self.all.first { $0.0 == note.name }?.1
    }
  }

  private func value(_ name: String, _ key: String) -> Any? {
    lock.withLock { notes }.last { note in
      Self.all.first { $0.0 == note.name }?.1 == name
    }?.userInfo?[key]
  }

  /// The user info of the last notification of the name.
  func userInfo(_ name: String) -> [AnyHashable: Any]? {
    lock.withLock { notes }.last { note in
      Self.all.first { $0.0 == note.name }?.1 == name
    }?
    .userInfo
  }

  func objects(_ name: String, _ key: String) -> Set<NSManagedObject>? {
    value(name, key) as? Set<NSManagedObject>
  }

  func identifiers(_ name: String, _ key: String) -> Set<NSManagedObjectID>? {
    value(name, key) as? Set<NSManagedObjectID>
  }
}
