import Foundation
import OpenCoreData
import Testing

/// Notes the states that an object reads in `didSave()`, and runs what a test sets.
final class AnnouncedNote: NSManagedObject {
  var states: [[Bool]] = []
  var onDidSave: ((AnnouncedNote) -> Void)?

  override func didSave() {
    super.didSave()
    states.append([isInserted, isUpdated, isDeleted, hasChanges])
    onDidSave?(self)
  }
}

/// Apple's page of `didSave()`: "You can find out if an object is marked for deletion with isDeleted".
@Suite("What an object reads in didSave()")
struct SaveAnnouncementTests {
  private let library: Library
  private let context: NSManagedObjectContext

  init() throws {
    let entity = ModelParts.entity("Note", [ModelParts.text("text") { $0.isOptional = true }])
    entity.managedObjectClassName = NSStringFromClass(AnnouncedNote.self)
    library = try Library(model: MigrationBench.model(entity))
    context = library.context()
  }

  @Test("An object reads whether it was inserted, updated or deleted", arguments: [true, false])
  func states(isChild: Bool) throws {
    let used = isChild ? context.child() : context
    try used.performAndWait {
      let note = AnnouncedNote(context: used)
      try used.save()
      note.setValue("changed", forKey: "text")
      try used.save()
      #expect(!note.isUpdated && !note.hasChanges)
      used.delete(note)
      try used.save()
      let (yes, no) = (true, false)
      #expect(
        note.states == [[yes, no, no, yes], [no, yes, no, yes], [no, no, yes, yes]]
      )
      #expect(!note.isDeleted)
    }
  }

  @Test("Another object of the save reads as deleted too, and one outside of it as unchanged")
  func others() throws {
    try context.performAndWait {
      let (gone, other) = (AnnouncedNote(context: context), AnnouncedNote(context: context))
      try context.save()
      let made = AnnouncedNote(context: context)
      context.delete(gone)
      var read: [Bool] = []
      made.onDidSave = { _ in read = [gone.isDeleted, other.isInserted, other.hasChanges] }
      try context.save()
      #expect(read == [true, false, false])
    }
  }

  @Test(
    "A deleted object that is read, changed or deleted again in didSave() leaves no change",
    arguments: ["read", "change", "delete"]
  )
  func deleted(action: String) throws {
    let note = try context.performAndWait {
      let note = AnnouncedNote(context: context)
      try context.save()
      return note.objectID
    }
    let other = library.context()
    try other.performAndWait {
      let gone = try #require(other.object(with: note) as? AnnouncedNote)
      gone.onDidSave = { note in
        switch action {
        case "read": _ = note.value(forKey: "text")
        case "change": note.setValue("b", forKey: "text")
        default: other.delete(note)
        }
      }
      other.delete(gone)
      try other.save()
      #expect(gone.managedObjectContext == nil)
      #expect(other.brokenInvariants().isEmpty)
      #expect(other.updatedObjects.isEmpty && other.deletedObjects.isEmpty)
      _ = AnnouncedNote(context: other)
      try other.save()
      #expect(!other.hasChanges)
    }
  }

  @Test("A change, a deletion and an insertion in didSave() belong to the next save")
  func changes() throws {
    try context.performAndWait {
      let note = AnnouncedNote(context: context)
      note.onDidSave = { note in
        note.onDidSave = nil
        note.setValue("after", forKey: "text")
      }
      try context.save()
      #expect(note.isUpdated && !note.isInserted)
      #expect(context.updatedObjects == [note])
      note.onDidSave = { note in
        note.onDidSave = nil
        note.managedObjectContext?.delete(note)
      }
      try context.save()
      #expect(context.deletedObjects == [note])
      context.refreshAllObjects()
      #expect(try library.context().count(for: NSFetchRequest(entityName: "Note")) == 1)
      try context.save()
      #expect(try library.context().count(for: NSFetchRequest(entityName: "Note")) == 0)
    }
  }
}
