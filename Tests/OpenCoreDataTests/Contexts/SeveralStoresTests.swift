import Foundation
import OpenCoreData
import Synchronization
import Testing

@Suite("A context with several stores")
struct SeveralStoresTests {
  /// Items in one file, notes in another.
  private final class World {
    let folder: StoreFolder
    let coordinator: NSPersistentStoreCoordinator
    let items: NSPersistentStore
    let notes: NSPersistentStore
    let context: NSManagedObjectContext

    init() throws {
      folder = try StoreFolder()
      coordinator = NSPersistentStoreCoordinator(managedObjectModel: ItemModel.make())
      items = try coordinator.addPersistentStore(
        ofType: NSSQLiteStoreType,
        configurationName: "Items",
        at: folder.url.appendingPathComponent("items.sqlite")
      )
      notes = try coordinator.addPersistentStore(
        ofType: NSSQLiteStoreType,
        configurationName: "Notes",
        at: folder.url.appendingPathComponent("notes.sqlite")
      )
      context = NSManagedObjectContext(.privateQueue)
      context.persistentStoreCoordinator = coordinator
    }
  }

  /// Two files that hold every entity.
  private final class EqualStores {
    let folder: StoreFolder
    let stores: [NSPersistentStore]
    let context = NSManagedObjectContext(.privateQueue)

    init() throws {
      let folder = try StoreFolder()
      let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ItemModel.make())
      stores = try ["a", "b"].map { name in
        try coordinator.addPersistentStore(
          ofType: NSSQLiteStoreType,
          configurationName: nil,
          at: folder.url.appendingPathComponent("\(name).sqlite")
        )
      }
      self.folder = folder
      context.persistentStoreCoordinator = coordinator
    }
  }

  @Test("Objects are saved to the store with their entity, in one save")
  func configurations() throws {
    let world = try World()
    let context = world.context
    try context.performAndWait {
      let item = ItemModel.insert(code: "i", into: context)
      let note = ItemModel.insert("Note", code: "n", into: context)
      try context.save()
      #expect(item.objectID.persistentStore === world.items)
      #expect(note.objectID.persistentStore === world.notes)
      item.setValue(2, forKey: "count")
      context.delete(note)
      try context.save()
      context.reset()
      try #expect(ItemModel.items(context) == ["i 2"])
      try #expect(ItemModel.items(context, "Note").isEmpty)
    }
  }

  @Test("Commits of a save over several stores are announced when no store is locked")
  func announcements() throws {
    let world = try World()
    let items = try #require(world.items as? SQLiteStore)
    let notes = try #require(world.notes as? SQLiteStore)
    let failures = Mutex<[String]>([])
    for store in [items, notes] {
      store.observeCommits { commit in
        // A write of the observer itself is announced too.
        guard commit.isContextSave else { return }
        do {
          try items.write(author: "observer") { _ in }
          try notes.write(author: "observer") { _ in }
          failures.withLock { $0.append("none") }
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    let context = world.context
    try context.performAndWait {
      _ = ItemModel.insert(code: "i", into: context)
      _ = ItemModel.insert("Note", code: "n", into: context)
      try context.save()
    }
    #expect(failures.withLock { $0 } == ["none", "none"])
  }

  @Test("A conflict in either store leaves both unchanged", arguments: ["Item", "Note"])
  func atomic(conflicting: String) throws {
    let world = try World()
    let context = world.context
    try context.performAndWait {
      let item = ItemModel.insert(code: "i", into: context)
      let note = ItemModel.insert("Note", code: "n", into: context)
      try context.save()
      let other = NSManagedObjectContext(.privateQueue)
      other.persistentStoreCoordinator = world.coordinator
      try other.performAndWait {
        let request = NSFetchRequest<NSManagedObject>(entityName: conflicting)
        try other.fetch(request).first?.setValue(7, forKey: "count")
        try other.save()
      }
      item.setValue(1, forKey: "count")
      note.setValue(1, forKey: "count")
      let error = try #require(throws: CocoaError.self) { try context.save() }
      #expect(error.persistentStoreSaveConflicts?.first?.sourceObject.entity.name == conflicting)
      #expect(context.updatedObjects == [item, note])
      try other.performAndWait {
        other.reset()
        try #expect(
          ItemModel.items(other, conflicting == "Item" ? "Note" : "Item").first?.last == "0"
        )
      }
      context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      try context.save()
      try other.performAndWait {
        other.reset()
        try #expect(ItemModel.items(other) == ["i 1"])
        try #expect(ItemModel.items(other, "Note") == ["n 1"])
      }
    }
  }

  @Test("New objects can be assigned to one of several stores that hold their entity")
  func assignment() throws {
    let world = try EqualStores()
    let context = world.context
    try context.performAndWait {
      let objects = ["1", "2", "3"].map { ItemModel.insert(code: $0, into: context) }
      context.assign(objects[1], to: world.stores[1])
      try context.obtainPermanentIDs(for: [objects[1]])
      #expect(objects[1].objectID.persistentStore === world.stores[1])
      try context.save()
      #expect(
        objects.map { $0.objectID.persistentStore === world.stores[0] } == [true, false, true]
      )
      let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
      request.affectedStores = [world.stores[1]]
      try #expect(context.fetch(request) == [objects[1]])
      try #expect(ItemModel.items(context) == ["1 0", "2 0", "3 0"])
    }
  }

  @Test("A relationship cannot refer to an object in another store")
  func across() throws {
    let world = try EqualStores()
    let context = world.context
    try context.performAndWait {
      let item = ItemModel.insert(code: "1", into: context)
      let box = ItemModel.insert("Box", into: context)
      item.setValue(box, forKey: "box")
      context.assign(item, to: world.stores[0])
      context.assign(box, to: world.stores[1])
      let error = try #require(throws: CocoaError.self) { try context.save() }
      #expect(error.code.rawValue == NSManagedObjectExternalRelationshipError)
    }
  }

  @Test("An object that is stored cannot be assigned to another store")
  func reassignment() async {
    await #expect(processExitsWith: .failure) {
      let container = try ItemModel.container()
      let context = container.newBackgroundContext()
      try context.performAndWait {
        let item = ItemModel.insert(into: context)
        try context.save()
        if let store = container.persistentStoreCoordinator.persistentStores.first {
          context.assign(item, to: store)
        }
      }
    }
  }

  @Test("A save with changes but without a store fails with an error")
  func none() throws {
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = NSPersistentStoreCoordinator(
      managedObjectModel: ItemModel.make()
    )
    try context.performAndWait {
      try context.save()
      ItemModel.insert(into: context)
      let error = try #require(throws: CocoaError.self) { try context.save() }
      #expect(
        error.localizedDescription
          == "This NSPersistentStoreCoordinator has no persistent stores. It cannot perform a save "
          + "operation."
      )
    }
  }

  /// Stores notes in a custom store.
  private func addJSONStore(
    _ coordinator: NSPersistentStoreCoordinator,
    _ configuration: String,
    _ url: URL
  ) throws -> JSONAtomicStore {
    NSPersistentStoreCoordinator.registerStoreClass(
      JSONAtomicStore.self,
      forStoreType: JSONAtomicStore.storeType
    )
    let store = try coordinator.addPersistentStore(
      ofType: JSONAtomicStore.storeType,
      configurationName: configuration,
      at: url
    )
    return try #require(store as? JSONAtomicStore)
  }

  @Test("If a custom store fails, the other stores roll back too")
  func customStoreFails() throws {
    let folder = try StoreFolder()
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ItemModel.make())
    try coordinator.addPersistentStore(
      ofType: NSSQLiteStoreType,
      configurationName: "Items",
      at: folder.url.appendingPathComponent("items.sqlite")
    )
    let notes = try addJSONStore(
      coordinator,
      "Notes",
      folder.url.appendingPathComponent("notes.json")
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    try context.performAndWait {
      let item = ItemModel.insert(code: "i", into: context)
      let note = ItemModel.insert("Note", code: "n", into: context)
      notes.fails = true
      #expect(throws: (any Error).self) { try context.save() }
      #expect(context.insertedObjects == [item, note])
      let other = NSManagedObjectContext(.privateQueue)
      other.persistentStoreCoordinator = coordinator
      try #expect(ItemModel.items(other).isEmpty)
      notes.fails = false
      try context.save()
      #expect(!context.hasChanges)
      try #expect(ItemModel.items(other) == ["i 0"])
      try #expect(ItemModel.items(other, "Note") == ["n 0"])
    }
  }

  @Test("A part that one store committed before another failed counts as saved, with 134040")
  func incomplete() throws {
    let folder = try StoreFolder()
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ItemModel.make())
    // Neither store can roll back after its commit.
    _ = try addJSONStore(coordinator, "Items", folder.url.appendingPathComponent("items.json"))
    let notes = try addJSONStore(
      coordinator,
      "Notes",
      folder.url.appendingPathComponent("notes.json")
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    try context.performAndWait {
      let item = ItemModel.insert(code: "i", into: context)
      let note = ItemModel.insert("Note", code: "n", into: context)
      notes.fails = true
      let error = try #require(throws: CocoaError.self) { try context.save() }
      #expect(error.code.rawValue == NSPersistentStoreIncompleteSaveError)
      #expect(error.affectedStores as? [NSPersistentStore] == [notes])
      #expect(
        (error as NSError).userInfo[NSAffectedObjectsErrorKey] as? [NSManagedObject] == [note]
      )
      #expect(context.insertedObjects == [note])
      #expect(!item.hasChanges)
      notes.fails = false
      try context.save()
      #expect(!context.hasChanges)
      context.reset()
      try #expect(ItemModel.items(context) == ["i 0"])
      try #expect(ItemModel.items(context, "Note") == ["n 0"])
    }
  }

  @Test(
    "Objects that a didSave observer deletes after a partly failed save are pending deletions only"
  )
  func incompleteAndDeleted() throws {
    let folder = try StoreFolder()
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ItemModel.make())
    _ = try addJSONStore(coordinator, "Items", folder.url.appendingPathComponent("items.json"))
    let notes = try addJSONStore(
      coordinator,
      "Notes",
      folder.url.appendingPathComponent("notes.json")
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    try context.performAndWait {
      let saved = ItemModel.insert("Note", code: "s", into: context)
      try context.save()
      saved.setValue(7, forKey: "count")
      ItemModel.insert(code: "i", into: context)
      let made = ItemModel.insert("Note", code: "n", into: context)
      notes.fails = true
      nonisolated(unsafe) let waiting = [saved, made]
      let token = NotificationCenter.default.addObserver(
        forName: .NSManagedObjectContextDidSave,
        object: context,
        queue: nil
      ) { _ in for note in waiting { context.delete(note) } }
      #expect(throws: CocoaError.self) { try context.save() }
      NotificationCenter.default.removeObserver(token)
      #expect(context.brokenInvariants().isEmpty)
      notes.fails = false
      try context.save()
      #expect(!context.hasChanges)
      try #expect(ItemModel.items(context, "Note").isEmpty)
    }
  }

  @Test("A conflict check that an incomplete save omitted is made by the next one")
  func incompleteCheck() throws {
    let folder = try StoreFolder()
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ItemModel.make())
    _ = try addJSONStore(coordinator, "Items", folder.url.appendingPathComponent("items.json"))
    _ = try addJSONStore(coordinator, "Notes", folder.url.appendingPathComponent("notes.json"))
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    try context.performAndWait {
      let note = ItemModel.insert("Note", code: "n", into: context)
      try context.save()
      let other = NSManagedObjectContext(.privateQueue)
      other.persistentStoreCoordinator = coordinator
      try other.performAndWait {
        other.object(with: note.objectID).setValue(7, forKey: "count")
        try other.save()
      }
      context.detectConflicts(for: note)
      ItemModel.insert(code: "i", into: context)
      let first = try #require(throws: CocoaError.self) { try context.save() }
      #expect(first.code.rawValue == NSPersistentStoreIncompleteSaveError)
      let second = try #require(throws: CocoaError.self) { try context.save() }
      #expect(second.code == .managedObjectMerge)
    }
  }
}
