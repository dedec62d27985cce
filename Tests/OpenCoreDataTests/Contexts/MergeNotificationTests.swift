import Foundation
import OpenCoreData
import Testing

@Suite("Notifications of contexts, and merging them")
struct MergeNotificationTests {
  private let request = NSFetchRequest<NSManagedObject>(entityName: "Item")

  @Test("Notification names and keys are Core Data's")
  func names() {
    #expect(
      NSManagedObjectContext.didSaveObjectsNotification.rawValue
        == "NSManagingContextDidSaveChangesNotification"
    )
    #expect(NSManagedObjectContext.willSaveObjectsNotification == .NSManagedObjectContextWillSave)
    #expect(
      NSManagedObjectContext.didChangeObjectsNotification == .NSManagedObjectContextObjectsDidChange
    )
    #expect(
      NSManagedObjectContext.didSaveObjectIDsNotification == .NSManagedObjectContextDidSaveObjectIDs
    )
    #expect(
      NSManagedObjectContext.didMergeChangesObjectIDsNotification
        == .NSManagedObjectContextDidMergeChangesObjectIDs
    )
    typealias Key = NSManagedObjectContext.NotificationKey
    #expect(Key.insertedObjects.rawValue == NSInsertedObjectsKey)
    #expect(Key.updatedObjects.rawValue == NSUpdatedObjectsKey)
    #expect(Key.deletedObjects.rawValue == NSDeletedObjectsKey)
    #expect(Key.refreshedObjects.rawValue == NSRefreshedObjectsKey)
    #expect(Key.invalidatedObjects.rawValue == NSInvalidatedObjectsKey)
    #expect(Key.invalidatedAllObjects.rawValue == NSInvalidatedAllObjectsKey)
    #expect(Key.insertedObjectIDs.rawValue == NSInsertedObjectIDsKey)
    #expect(Key.updatedObjectIDs.rawValue == NSUpdatedObjectIDsKey)
    #expect(Key.deletedObjectIDs.rawValue == NSDeletedObjectIDsKey)
    #expect(Key.queryGeneration.rawValue == NSManagedObjectContextQueryGenerationKey)
  }

  @Test("An object that is inserted and deleted in one turn is deleted in the notification")
  func comesAndGoes() throws {
    final class Deleted: @unchecked Sendable {
      // Sendable: the notification is posted on the test's thread.
      var flags: [Bool] = []
      var contexts: [NSManagedObjectContext?] = []
    }
    let context = try ItemModel.container().newBackgroundContext()
    let notes = NoteCollector(context)
    let deleted = Deleted()
    let token = NotificationCenter.default.addObserver(
      forName: .NSManagedObjectContextObjectsDidChange,
      object: context,
      queue: nil
    ) { note in
      let objects = note.userInfo?[NSDeletedObjectsKey] as? Set<NSManagedObject> ?? []
      deleted.flags += objects.map(\.isDeleted)
      deleted.contexts += objects.map(\.managedObjectContext)
    }
    defer { NotificationCenter.default.removeObserver(token) }
    try context.performAndWait {
      let item = ItemModel.insert(code: "a", into: context)
      context.delete(item)
      context.processPendingChanges()
      #expect(notes.names == ["ObjectsDidChange"])
      #expect(notes.userInfo("ObjectsDidChange")?.keys.map(\.description) == ["deleted"])
      #expect(notes.objects("ObjectsDidChange", NSDeletedObjectsKey) == [item])
      #expect(deleted.flags == [true])
      #expect(deleted.contexts == [context])
      #expect(item.managedObjectContext == nil)
      #expect(!context.hasChanges)
      try context.save()
      #expect(notes.objects("DidSave", NSInsertedObjectsKey) == [])
      #expect(notes.objects("DidSave", NSDeletedObjectsKey) == nil)
    }
  }

  @Test("An object that left the context since it was refreshed is in no notification")
  func refreshedAndGone() throws {
    let container = try ItemModel.container()
    let (context, other) = (container.newBackgroundContext(), container.newBackgroundContext())
    let notes = NoteCollector(context)
    try context.performAndWait {
      let items = ["gone", "kept"].map { ItemModel.insert(code: $0, into: context) }
      try context.save()
      let gone = items[0].objectID
      for item in items { context.refresh(item, mergeChanges: false) }
      try other.performAndWait {
        other.delete(other.object(with: gone))
        try other.save()
      }
      #expect(throws: NSError.self) { try context.existingObject(with: gone) }
      notes.clear()
      context.processPendingChanges()
      #expect(notes.userInfo("ObjectsDidChange")?.keys.map(\.description) == ["refreshed"])
      #expect(notes.objects("ObjectsDidChange", NSRefreshedObjectsKey) == [items[1]])
    }
  }

  @Test("A handler of the notification can keep an object that was deleted before it was saved")
  func keptByHandler() throws {
    let context = try ItemModel.container().newBackgroundContext()
    let token = NotificationCenter.default.addObserver(
      forName: .NSManagedObjectContextObjectsDidChange,
      object: context,
      queue: nil
    ) { note in
      for object in note.userInfo?[NSDeletedObjectsKey] as? Set<NSManagedObject> ?? [] {
        context.insert(object)
      }
    }
    defer { NotificationCenter.default.removeObserver(token) }
    try context.performAndWait {
      let item = ItemModel.insert(code: "a", into: context)
      context.delete(item)
      context.processPendingChanges()
      #expect(context.insertedObjects == [item])
      try context.save()
      try #expect(ItemModel.items(context) == ["a 0"])
    }
  }

  @Test("A handler of the will-save notification may reset the context, which then saves nothing")
  func resetBeforeSave() throws {
    let context = try ItemModel.container().newBackgroundContext()
    let token = NotificationCenter.default.addObserver(
      forName: .NSManagedObjectContextWillSave,
      object: context,
      queue: nil
    ) { _ in context.reset() }
    defer { NotificationCenter.default.removeObserver(token) }
    try context.performAndWait {
      ItemModel.insert(code: "a", into: context)
      try context.save()
      #expect(!context.hasChanges)
      try #expect(ItemModel.items(context).isEmpty)
    }
  }

  @Test("A save posts notifications before and after, with objects and identifiers, on its thread")
  func save() throws {
    let context = try ItemModel.container().newBackgroundContext()
    try context.performAndWait {
      let kept = ItemModel.insert(code: "kept", into: context)
      let doomed = ItemModel.insert(code: "doomed", into: context)
      try context.save()
      let new = ItemModel.insert(code: "new", into: context)
      kept.setValue("changed", forKey: "code")
      context.delete(doomed)
      final class Notes: @unchecked Sendable {
        var all: [(Notification.Name, [AnyHashable: Any], Thread)] = []
      }
      let notes = Notes()
      let names: [Notification.Name] = [
        .NSManagedObjectContextWillSave, .NSManagedObjectContextDidSave,
        .NSManagedObjectContextDidSaveObjectIDs,
      ]
      let tokens = names.map { name in
        NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { note in
          notes.all.append((name, note.userInfo ?? [:], Thread.current))
        }
      }
      defer { for token in tokens { NotificationCenter.default.removeObserver(token) } }
      let gone = doomed.objectID
      try context.save()
      #expect(notes.all.map(\.0) == names)
      #expect(notes.all.allSatisfy { $0.2 == Thread.current })
      let objects = notes.all[1].1
      #expect(objects[NSInsertedObjectsKey] as? Set<NSManagedObject> == [new])
      #expect(objects[NSUpdatedObjectsKey] as? Set<NSManagedObject> == [kept])
      #expect(objects[NSDeletedObjectsKey] as? Set<NSManagedObject> == [doomed])
      let identifiers = notes.all[2].1
      #expect(identifiers[NSInsertedObjectIDsKey] as? Set<NSManagedObjectID> == [new.objectID])
      #expect(identifiers[NSUpdatedObjectIDsKey] as? Set<NSManagedObjectID> == [kept.objectID])
      #expect(identifiers[NSDeletedObjectIDsKey] as? Set<NSManagedObjectID> == [gone])
      #expect(!new.objectID.isTemporaryID)
    }
  }

  @Test("Another coordinator's save is merged from its notification", arguments: [false, true])
  func otherCoordinator(byIdentifiers: Bool) throws {
    let folder = try StoreFolder()
    let url = folder.url.appendingPathComponent("a.sqlite")
    let mine = try ItemModel.container(at: url)
    let viewer = mine.newBackgroundContext()
    let (kept, doomed) = try viewer.performAndWait {
      let kept = ItemModel.insert(code: "kept", count: 1, into: viewer)
      let doomed = ItemModel.insert(code: "doomed", into: viewer)
      try viewer.save()
      kept.setValue(5, forKey: "count")
      return (kept, doomed)
    }
    let theirs = try ItemModel.container(at: url).newBackgroundContext()
    let notes = NoteCollector(viewer)
    let token = NotificationCenter.default.addObserver(
      forName: byIdentifiers
        ? NSManagedObjectContext.didSaveObjectIDsNotification
        : NSManagedObjectContext.didSaveObjectsNotification,
      object: theirs,
      queue: nil
    ) { note in viewer.performAndWait { viewer.mergeChanges(fromContextDidSave: note) } }
    defer { NotificationCenter.default.removeObserver(token) }
    try theirs.performAndWait {
      for object in try theirs.fetch(request) {
        if object.value(forKey: "code") as? String == "doomed" {
          theirs.delete(object)
        } else {
          object.setValue("theirs", forKey: "code")
        }
      }
      ItemModel.insert(code: "new", into: theirs)
      try theirs.save()
    }
    try viewer.performAndWait {
      #expect(kept.value(forKey: "code") as? String == "theirs")
      #expect(kept.value(forKey: "count") as? Int == 5)
      #expect(viewer.updatedObjects == [kept])
      #expect(doomed.managedObjectContext == nil)
      #expect(notes.objects("ObjectsDidChange", NSDeletedObjectsKey) == [doomed])
      #expect(notes.objects("ObjectsDidChange", NSRefreshedObjectsKey) == [kept])
      #expect(notes.objects("ObjectsDidChange", NSInsertedObjectsKey)?.count == 1)
      #expect(notes.names.contains("DidMergeChangesObjectIDs"))
      try #expect(ItemModel.items(viewer) == ["new 0", "theirs 5"])
      try viewer.save()
    }
  }

  @Test("Changes are merged from sets or arrays of identifiers or URLs")
  func remote() throws {
    let folder = try StoreFolder()
    let url = folder.url.appendingPathComponent("a.sqlite")
    let container = try ItemModel.container(at: url)
    let contexts = [container.newBackgroundContext(), container.newBackgroundContext()]
    let writer = try ItemModel.container(at: url).newBackgroundContext()
    let identifiers = try writer.performAndWait {
      let objects = ["a", "b", "c"].map { ItemModel.insert(code: $0, into: writer) }
      try writer.save()
      return objects.map(\.objectID)
    }
    let seen = try contexts.map { context in
      try context.performAndWait {
        try context.fetch(request).sorted { first, second in
          (first.value(forKey: "code") as? String ?? "")
            < (second.value(forKey: "code") as? String ?? "")
        }
      }
    }
    let added = try writer.performAndWait {
      writer.object(with: identifiers[0]).setValue("A", forKey: "code")
      writer.object(with: identifiers[1]).setValue("B", forKey: "code")
      writer.delete(writer.object(with: identifiers[2]))
      let added = ItemModel.insert(code: "d", into: writer)
      try writer.save()
      return added.objectID
    }
    let notes = NoteCollector(contexts[0])
    NSManagedObjectContext.mergeChanges(
      fromRemoteContextSave: [
        NSInsertedObjectsKey: [added.uriRepresentation()] as Set<URL>,
        NSUpdatedObjectsKey: [
          identifiers[0].uriRepresentation(), identifiers[1].uriRepresentation(),
        ],
        NSDeletedObjectsKey: Set([identifiers[2]]),
      ],
      into: contexts
    )
    for (context, objects) in zip(contexts, seen) {
      context.performAndWait {
        #expect(objects[0].value(forKey: "code") as? String == "A")
        #expect(objects[1].value(forKey: "code") as? String == "B")
        #expect(objects[2].managedObjectContext == nil)
      }
    }
    let merged = notes.userInfo("DidMergeChangesObjectIDs")
    #expect((merged?[NSInsertedObjectIDsKey] as? Set<NSManagedObjectID>)?.count == 1)
    #expect((merged?[NSUpdatedObjectIDsKey] as? Set<NSManagedObjectID>)?.count == 2)
    #expect((merged?[NSDeletedObjectIDsKey] as? Set<NSManagedObjectID>)?.count == 1)
  }

  @Test("A reset posts that all objects are invalid, a refresh posts the refreshed ones")
  func refreshed() throws {
    let context = try ItemModel.container().newBackgroundContext()
    try context.performAndWait {
      let item = ItemModel.insert(code: "a", into: context)
      try context.save()
      let notes = NoteCollector(context)
      context.refresh(item, mergeChanges: true)
      context.processPendingChanges()
      #expect(notes.objects("ObjectsDidChange", NSRefreshedObjectsKey) == [item])
      notes.clear()
      context.reset()
      #expect(notes.userInfo("ObjectsDidChange")?[NSInvalidatedAllObjectsKey] != nil)
    }
  }

  @Test("A context without automatic merging is not changed by other saves")
  func manual() throws {
    let container = try ItemModel.container()
    let viewer = container.newBackgroundContext()
    #expect(!viewer.automaticallyMergesChangesFromParent)
    let item = try viewer.performAndWait {
      let item = ItemModel.insert(code: "a", into: viewer)
      try viewer.save()
      return item
    }
    let writer = container.newBackgroundContext()
    let identifier = item.objectID
    try writer.performAndWait {
      writer.object(with: identifier).setValue("b", forKey: "code")
      try writer.save()
    }
    viewer.performAndWait {
      #expect(item.value(forKey: "code") as? String == "a")
      viewer.refresh(item, mergeChanges: true)
      #expect(item.value(forKey: "code") as? String == "b")
    }
  }
}
