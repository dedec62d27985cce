import Foundation
import OpenCoreData
import Testing

@Suite("Saves without changes")
struct EmptySaveTests {
  private let library: Library
  private let context: NSManagedObjectContext

  init() throws {
    library = try Library()
    context = library.context()
  }

  /// The number of transactions in the store's history.
  private func transactions() throws -> Int {
    let request = NSPersistentHistoryChangeRequest.fetchHistory(after: Date.distantPast)
    request.resultType = .transactionsOnly
    let result = try context.execute(request) as? NSPersistentHistoryResult
    return try #require(result?.result as? [NSPersistentHistoryTransaction]).count
  }

  @Test("A save without changes posts its notifications with empty sets, and writes nothing")
  func notifications() throws {
    try context.performAndWait {
      Reader(context: context).name = "Ada"
      try context.save()
      let before = try transactions()
      let notes = NoteCollector(context)
      try context.save()
      #expect(notes.names == ["WillSave", "DidSave", "DidSaveObjectIDs"])
      #expect(notes.objects("DidSave", NSInsertedObjectsKey) == [])
      #expect(notes.objects("DidSave", NSUpdatedObjectsKey) == [])
      #expect(notes.objects("DidSave", NSDeletedObjectsKey) ?? [] == [])
      #expect(notes.identifiers("DidSaveObjectIDs", NSInsertedObjectIDsKey) == [])
      #expect(notes.identifiers("DidSaveObjectIDs", NSUpdatedObjectIDsKey) == [])
      try #expect(transactions() == before)
    }
  }

  @Test("The notification of a save has the inserted and the updated objects where there are none")
  func emptySets() throws {
    try context.performAndWait {
      let notes = NoteCollector(context)
      let reader = Reader(context: context)
      try context.save()
      #expect(notes.objects("DidSave", NSInsertedObjectsKey) == [reader])
      #expect(notes.objects("DidSave", NSUpdatedObjectsKey) == [])
      reader.name = "Ada"
      try context.save()
      #expect(notes.objects("DidSave", NSInsertedObjectsKey) == [])
      #expect(notes.objects("DidSave", NSUpdatedObjectsKey) == [reader])
      // A turn has only what it changed.
      #expect(notes.objects("ObjectsDidChange", NSInsertedObjectsKey) == nil)
      #expect(notes.identifiers("DidSaveObjectIDs", NSInsertedObjectIDsKey) == [])
    }
  }

  @Test("What a handler changes before a save that had no changes is saved")
  func changeBeforeSave() throws {
    try context.performAndWait {
      let context = self.context
      let token = NotificationCenter.default.addObserver(
        forName: .NSManagedObjectContextWillSave,
        object: context,
        queue: nil
      ) { _ in Reader(context: context).name = "Ada" }
      defer { NotificationCenter.default.removeObserver(token) }
      let notes = NoteCollector(context)
      try context.save()
      #expect(!context.hasChanges)
      #expect(notes.objects("DidSave", NSInsertedObjectsKey)?.count == 1)
    }
    let other = library.context()
    try other.performAndWait {
      try #expect(other.count(for: NSFetchRequest<Reader>(entityName: "Reader")) == 1)
    }
  }

  @Test("A child's save without changes leaves its parent as it is, and is merged as nothing")
  func child() throws {
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = context
    let notes = NoteCollector(child)
    let parentNotes = NoteCollector(context)
    let parent = context
    let token = NotificationCenter.default.addObserver(
      forName: .NSManagedObjectContextDidSave,
      object: child,
      queue: nil
    ) { note in parent.performAndWait { parent.mergeChanges(fromContextDidSave: note) } }
    defer { NotificationCenter.default.removeObserver(token) }
    try child.performAndWait { try child.save() }
    #expect(notes.names == ["WillSave", "DidSave", "DidSaveObjectIDs"])
    #expect(parentNotes.names == [])
    context.performAndWait { #expect(!context.hasChanges) }
  }
}
