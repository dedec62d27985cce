import Foundation
import OpenCoreData
import Testing

/// What contexts do when a store is removed from their coordinator.
@Suite("Objects of a removed store")
struct RemovedStoreTests {
  private let coordinator: NSPersistentStoreCoordinator
  private let items: NSPersistentStore
  private let notes: NSPersistentStore

  init() throws {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ItemModel.make())
    func add(_ configuration: String) throws -> NSPersistentStore {
      try coordinator.addPersistentStore(
        ofType: NSInMemoryStoreType,
        configurationName: configuration,
        at: nil
      )
    }
    items = try add("Items")
    notes = try add("Notes")
    self.coordinator = coordinator
  }

  private func context() -> NSManagedObjectContext {
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    return context
  }

  @Test("The objects of the only store leave the context, in one notification for all of them")
  func onlyStore() throws {
    try coordinator.remove(notes)
    let context = context()
    try context.performAndWait {
      let box = ItemModel.insert("Box", into: context)
      let item = ItemModel.insert(code: "a", into: context)
      item.setValue(box, forKey: "box")
      try context.save()
      let collected = NoteCollector(context)
      try coordinator.remove(items)
      #expect(context.registeredObjects.isEmpty)
      #expect(item.managedObjectContext == nil)
      #expect(item.isFault)
      #expect(item.value(forKey: "box") == nil)
      #expect(collected.names == ["ObjectsDidChange"])
      let gone =
        collected.userInfo("ObjectsDidChange")?[NSInvalidatedAllObjectsKey] as? [NSManagedObjectID]
      #expect(Set(gone ?? []) == [box.objectID, item.objectID])
      try context.save()
      #expect(context.brokenInvariants() == [])
    }
  }

  private final class List: NSObject, NSFetchedResultsControllerDelegate {
    var changes = 0

    func controllerDidChangeContent(
      _ controller: NSFetchedResultsController<any NSFetchRequestResult>
    ) { changes += 1 }
  }

  @Test("Objects of other stores stay, and a list of results loses the others")
  func oneOfTwo() throws {
    let context = context()
    try context.performAndWait {
      let item = ItemModel.insert(code: "a", into: context)
      let note = ItemModel.insert("Note", code: "n", into: context)
      try context.save()
      let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
      request.sortDescriptors = [NSSortDescriptor(key: "code", ascending: true)]
      let controller = NSFetchedResultsController(
        fetchRequest: request,
        managedObjectContext: context,
        sectionNameKeyPath: nil,
        cacheName: nil
      )
      let list = List()
      controller.delegate = list
      try controller.performFetch()
      #expect(controller.fetchedObjects == [item])
      let collected = NoteCollector(context)
      try coordinator.remove(items)
      #expect(context.registeredObjects == [note])
      #expect(note.value(forKey: "code") as? String == "n")
      #expect(collected.objects("ObjectsDidChange", NSInvalidatedObjectsKey) == [item])
      #expect(list.changes == 1)
      #expect(controller.fetchedObjects == [])
      note.setValue("m", forKey: "code")
      try context.save()
      #expect(context.brokenInvariants() == [])
    }
  }

  @Test("Changed objects stay, so that the save fails and loses nothing, and leave with a rollback")
  func changes() throws {
    let context = context()
    try context.performAndWait {
      let changed = ItemModel.insert(code: "a", into: context)
      let deleted = ItemModel.insert(code: "b", into: context)
      let clean = ItemModel.insert(code: "c", into: context)
      try context.save()
      changed.setValue("x", forKey: "code")
      context.delete(deleted)
      context.processPendingChanges()
      try coordinator.remove(items)
      #expect(context.registeredObjects == [changed, deleted])
      #expect(clean.managedObjectContext == nil)
      #expect(changed.value(forKey: "code") as? String == "x")
      #expect(throws: CocoaError.self) { try context.save() }
      #expect(context.updatedObjects == [changed])
      #expect(context.deletedObjects == [deleted])
      #expect(context.brokenInvariants() == [])
      let collected = NoteCollector(context)
      context.rollback()
      #expect(context.registeredObjects.isEmpty)
      #expect(!context.hasChanges)
      #expect(collected.userInfo("ObjectsDidChange")?[NSInvalidatedAllObjectsKey] != nil)
      try context.save()
      #expect(context.brokenInvariants() == [])
    }
  }

  @Test("On another thread the objects leave in the next block, and a child's objects leave too")
  func otherThread() throws {
    let context = context()
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = context
    let identifier = try context.performAndWait {
      let item = ItemModel.insert(code: "a", into: context)
      try context.save()
      return item.objectID
    }
    let seen = [
      try context.performAndWait { try context.existingObject(with: identifier) },
      try child.performAndWait { try child.existingObject(with: identifier) },
    ]
    try coordinator.remove(items)
    context.performAndWait { #expect(context.registeredObjects.isEmpty) }
    child.performAndWait { #expect(child.registeredObjects.isEmpty) }
    for object in seen { #expect(object.managedObjectContext == nil) }
  }

  @Test("What was undone before cannot be redone once a store is gone")
  func undo() throws {
    let context = context()
    try context.performAndWait {
      let manager = UndoManager()
      context.undoManager = manager
      let item = ItemModel.insert(code: "a", into: context)
      let note = ItemModel.insert("Note", code: "n", into: context)
      try context.save()
      item.setValue("b", forKey: "code")
      try context.save()
      #expect(manager.canUndo)
      try coordinator.remove(items)
      #expect(!manager.canUndo)
      note.setValue("m", forKey: "code")
      context.undo()
      #expect(note.value(forKey: "code") as? String == "n")
    }
  }
}
