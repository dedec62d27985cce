import Foundation
import OpenCoreData
import Testing

@Suite("Registration, look-up and life time of a context's objects")
struct ContextBehaviorTests {
  private let request = NSFetchRequest<NSManagedObject>(entityName: "Item")

  private func world(
    _ body: (NSPersistentContainer, NSManagedObjectContext) throws -> Void
  ) throws {
    let container = try ItemModel.container()
    let context = container.newBackgroundContext()
    try context.performAndWait { try body(container, context) }
  }

  /// Deletes all items in another context.
  private func deleteAll(_ container: NSPersistentContainer) throws {
    let other = container.newBackgroundContext()
    try other.performAndWait {
      for object in try other.fetch(request) { other.delete(object) }
      try other.save()
    }
  }

  @Test("A new context has Core Data's defaults")
  func defaults() throws {
    let container = try ItemModel.container()
    let context = container.newBackgroundContext()
    #expect(context.concurrencyType == .privateQueueConcurrencyType)
    #expect(container.viewContext.concurrencyType == .mainQueueConcurrencyType)
    #expect(NSManagedObjectContext(.mainQueue).concurrencyType == .mainQueueConcurrencyType)
    #expect(context.undoManager == nil)
    #expect(context.parent == nil)
    #expect(context.name == nil)
    #expect(context.transactionAuthor == nil)
    #expect(context.stalenessInterval == -1)
    #expect(context.propagatesDeletesAtEndOfEvent)
    #expect(context.shouldDeleteInaccessibleFaults)
    #expect(!context.retainsRegisteredObjects)
    #expect(!context.automaticallyMergesChangesFromParent)
    #expect(!context.hasChanges)
    context.userInfo["key"] = 7
    #expect(context.userInfo["key"] as? Int == 7)
  }

  @Test("An object is in at most one of the sets of inserted, updated and deleted objects")
  func sets() throws {
    try world { _, context in
      let stored = ItemModel.insert(code: "a", into: context)
      let doomed = ItemModel.insert(code: "b", into: context)
      #expect(context.insertedObjects == [stored, doomed])
      #expect(context.updatedObjects.isEmpty)
      try context.save()
      #expect(!context.hasChanges)
      stored.setValue("c", forKey: "code")
      context.delete(doomed)
      #expect(context.updatedObjects == [stored])
      #expect(context.deletedObjects == [doomed])
      #expect(context.insertedObjects.isEmpty)
      #expect(context.registeredObjects == [stored, doomed])
      context.delete(stored)
      context.processPendingChanges()
      #expect(context.updatedObjects.isEmpty)
      #expect(context.deletedObjects == [stored, doomed])
      try context.save()
      #expect(context.registeredObjects.isEmpty)
      #expect(stored.managedObjectContext == nil)
    }
  }

  @Test("An object that is inserted and deleted before a save is in no set")
  func comesAndGoes() throws {
    try world { _, context in
      let item = ItemModel.insert(code: "a", into: context)
      context.delete(item)
      context.processPendingChanges()
      #expect(!context.hasChanges)
      #expect(item.managedObjectContext == nil)
      try context.save()
      try #expect(context.count(for: request) == 0)
    }
  }

  @Test("Setting the same value makes an object updated, but writes nothing")
  func sameValue() throws {
    try world { container, context in
      let item = ItemModel.insert(code: "a", into: context)
      try context.save()
      let other = container.newBackgroundContext()
      let identifier = item.objectID
      let read = other.performAndWait {
        let read = other.object(with: identifier)
        _ = read.value(forKey: "code")
        return read
      }
      item.setValue("a", forKey: "code")
      #expect(context.hasChanges)
      #expect(item.isUpdated)
      #expect(!item.hasPersistentChangedValues)
      #expect(item.changedValues().isEmpty)
      try context.save()
      #expect(!context.hasChanges)
      // The row's version is the same, so this is no conflict.
      try other.performAndWait {
        read.setValue("b", forKey: "code")
        try other.save()
      }
    }
  }

  @Test(
    "A look-up by identifier returns a fault, a registered object, an existing object or throws"
  )
  func lookUp() throws {
    try world { container, context in
      let other = container.newBackgroundContext()
      let identifier = try other.performAndWait {
        let item = ItemModel.insert(code: "a", into: other)
        try other.save()
        return item.objectID
      }
      #expect(context.registeredObject(for: identifier) == nil)
      let fault = context.object(with: identifier)
      #expect(fault.isFault)
      #expect(context.registeredObject(for: identifier) === fault)
      try #expect(context.existingObject(with: identifier) === fault)
      #expect(!fault.isFault)
      try deleteAll(container)
      context.reset()
      let error = try #require(throws: CocoaError.self) {
        try context.existingObject(with: identifier)
      }
      #expect(error.code.rawValue == NSManagedObjectReferentialIntegrityError)
      // A fault is returned whether there is a row or not.
      #expect(context.object(with: identifier).isFault)
    }
  }

  @Test("An object whose deletion is not saved yet is found by its identifier")
  func existingDeleted() throws {
    try world { _, context in
      let item = ItemModel.insert(code: "a", into: context)
      try context.save()
      let identifier = item.objectID
      context.delete(item)
      try #expect(context.existingObject(with: identifier) === item)
      #expect(item.isDeleted)
      try context.save()
      #expect(throws: CocoaError.self) { try context.existingObject(with: identifier) }
    }
  }

  @Test("A fault whose row was deleted becomes a deleted object without values")
  func inaccessible() throws {
    try world { container, context in
      let item = ItemModel.insert(code: "a", into: context)
      try context.save()
      context.refresh(item, mergeChanges: false)
      try deleteAll(container)
      #expect(item.value(forKey: "code") == nil)
      #expect(item.isDeleted)
      #expect(context.deletedObjects == [item])
      try context.save()
    }
  }

  @Test("If inaccessible faults are not deleted, reading one stops the program")
  func inaccessibleStops() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let container = try ItemModel.container()
      let context = container.newBackgroundContext()
      try context.performAndWait {
        context.shouldDeleteInaccessibleFaults = false
        let item = ItemModel.insert(code: "a", into: context)
        try context.save()
        context.refresh(item, mergeChanges: false)
        let other = container.newBackgroundContext()
        try other.performAndWait {
          other.delete(other.object(with: item.objectID))
          try other.save()
        }
        _ = item.value(forKey: "code")
      }
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("CoreData could not fulfill a fault for '"))
  }

  @Test("Objects are retained by their changes, or if the context retains them")
  func retaining() throws {
    try world { _, context in
      ItemModel.insert(code: "a", into: context)
      try context.save()
      context.processPendingChanges()
      #expect(context.registeredObjects.isEmpty)
      try context.fetch(request).first?.setValue("b", forKey: "code")
      #expect(context.registeredObjects.count == 1)
      try context.save()
      context.retainsRegisteredObjects = true
      _ = try context.fetch(request)
      #expect(context.registeredObjects.count == 1)
      context.retainsRegisteredObjects = false
      #expect(context.registeredObjects.isEmpty)
    }
  }

  @Test("Objects can outlive their context, and then have none")
  func outliving() throws {
    let container = try ItemModel.container()
    var item: NSManagedObject?
    do {
      let context = container.newBackgroundContext()
      try context.performAndWait {
        item = ItemModel.insert(code: "a", into: context)
        try context.save()
      }
    }
    #expect(item?.managedObjectContext == nil)
    #expect(item?.objectID.isTemporaryID == false)
  }

  @Test("Delete rules are applied at the end of the turn, or immediately")
  func propagation() throws {
    let model = ItemModel.make()
    model.entitiesByName["Box"]?.relationshipsByName["items"]?.deleteRule = .cascadeDeleteRule
    let container = NSPersistentContainer(name: "Cascade", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    for isLate in [true, false] {
      let context = container.newBackgroundContext()
      context.propagatesDeletesAtEndOfEvent = isLate
      try context.performAndWait {
        let item = ItemModel.insert(code: "a", into: context)
        let box = ItemModel.insert("Box", into: context)
        item.setValue(box, forKey: "box")
        try context.save()
        context.delete(box)
        #expect(item.isDeleted == !isLate)
        context.processPendingChanges()
        #expect(item.isDeleted)
        try context.save()
      }
    }
  }

  @Test("A refresh drops changes or keeps them; all objects can be refreshed at once")
  func refreshing() throws {
    try world { container, context in
      let changed = ItemModel.insert(code: "a", count: 1, into: context)
      let clean = ItemModel.insert(code: "b", count: 1, into: context)
      let new = ItemModel.insert(code: "new", into: context)
      try context.save()
      changed.setValue(9, forKey: "count")
      let other = container.newBackgroundContext()
      try other.performAndWait {
        for object in try other.fetch(request) { object.setValue("x", forKey: "code") }
        try other.save()
      }
      new.setValue("mine", forKey: "code")
      let unsaved = ItemModel.insert(code: "unsaved", into: context)
      context.refreshAllObjects()
      #expect(clean.isFault)
      #expect(!changed.isFault)
      #expect(changed.value(forKey: "count") as? Int == 9)
      #expect(changed.value(forKey: "code") as? String == "x")
      #expect(new.value(forKey: "code") as? String == "mine")
      #expect(unsaved.value(forKey: "code") as? String == "unsaved")
      context.refresh(changed, mergeChanges: false)
      #expect(changed.isFault)
      #expect(changed.value(forKey: "count") as? Int == 1)
    }
  }

  @Test("Cached values are at most as old as the staleness interval allows")
  func staleness() throws {
    let folder = try StoreFolder()
    let url = folder.url.appendingPathComponent("a.sqlite")
    let container = try ItemModel.container(at: url)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let item = ItemModel.insert(code: "a", into: context)
      try context.save()
      let other = try ItemModel.container(at: url).newBackgroundContext()
      try other.performAndWait {
        try other.fetch(request).first?.setValue("b", forKey: "code")
        try other.save()
      }
      context.refresh(item, mergeChanges: false)
      #expect(item.value(forKey: "code") as? String == "a")
      context.stalenessInterval = 0
      context.refresh(item, mergeChanges: false)
      #expect(item.value(forKey: "code") as? String == "b")
    }
  }

  @Test("Within the staleness interval a value that this context has read is not read again")
  func young() throws {
    let folder = try StoreFolder()
    let url = folder.url.appendingPathComponent("a.sqlite")
    let context = try ItemModel.container(at: url).newBackgroundContext()
    try context.performAndWait {
      context.stalenessInterval = 3600
      let item = ItemModel.insert(code: "a", into: context)
      try context.save()
      let other = try ItemModel.container(at: url).newBackgroundContext()
      try other.performAndWait {
        try other.fetch(request).first?.setValue("b", forKey: "code")
        try other.save()
      }
      context.refresh(item, mergeChanges: false)
      #expect(item.value(forKey: "code") as? String == "a")
      context.stalenessInterval = 0
      context.refresh(item, mergeChanges: false)
      #expect(item.value(forKey: "code") as? String == "b")
    }
  }

  @Test("An object of a removed store has no values and no members, and does not stop the program")
  func removedStore() throws {
    try world { container, context in
      let box = ItemModel.insert("Box", into: context)
      let item = ItemModel.insert(code: "a", into: context)
      item.setValue(box, forKey: "box")
      try context.save()
      let identifier = item.objectID
      context.refreshAllObjects()
      let coordinator = container.persistentStoreCoordinator
      for store in coordinator.persistentStores { try coordinator.remove(store) }
      #expect(item.value(forKey: "code") == nil)
      #expect((box.value(forKey: "items") as? Set<NSManagedObject>)?.isEmpty == true)
      #expect(throws: CocoaError.self) { try context.existingObject(with: identifier) }
      context.reset()
      #expect(context.object(with: identifier).value(forKey: "code") == nil)
    }
  }

  @Test("An object that was removed from its context has no context in key-value coding either")
  func detached() throws {
    try world { _, context in
      let item = ItemModel.insert(code: "a", into: context)
      #expect(item.value(forKey: "managedObjectContext") as? NSManagedObjectContext === context)
      context.rollback()
      #expect(item.value(forKey: "managedObjectContext") == nil)
    }
  }

  @Test("The notification of a reset names each object once")
  func resetNotification() throws {
    try world { _, context in
      let changed = ItemModel.insert(code: "a", into: context)
      let deleted = ItemModel.insert(code: "b", into: context)
      let clean = ItemModel.insert(code: "c", into: context)
      try context.save()
      changed.setValue("d", forKey: "code")
      context.delete(deleted)
      let inserted = ItemModel.insert(code: "e", into: context)
      let all = [changed, deleted, clean, inserted].map(\.objectID)
      let notes = NoteCollector(context)
      context.reset()
      let named =
        notes.userInfo("ObjectsDidChange")?[NSInvalidatedAllObjectsKey] as? [NSManagedObjectID]
      #expect(named?.count == 4)
      #expect(Set(named ?? []) == Set(all))
    }
  }

  @Test("A reset forgets all objects and changes")
  func reset() throws {
    try world { _, context in
      let item = ItemModel.insert(code: "a", into: context)
      try context.save()
      item.setValue("b", forKey: "code")
      ItemModel.insert(code: "c", into: context)
      context.reset()
      #expect(!context.hasChanges)
      #expect(context.registeredObjects.isEmpty)
      #expect(item.managedObjectContext == nil)
      try #expect(ItemModel.items(context) == ["a 0"])
    }
  }

  @Test("Deleting another context's object stops the program")
  func foreignDelete() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let container = try ItemModel.container()
      let one = container.newBackgroundContext()
      let item = one.performAndWait { ItemModel.insert(into: one) }
      container.newBackgroundContext().delete(item)
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("An NSManagedObjectContext cannot delete objects in other contexts."))
  }

  @Test("An entity that the model does not have stops the program with its name")
  func unknownEntity() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let context = try ItemModel.container().newBackgroundContext()
      ItemModel.insert("Nothing", into: context)
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("could not locate an entity named 'Nothing' in this model."))
  }

  @Test("A failed save changes nothing, and succeeds after the error is fixed")
  func failedSave() throws {
    let model = ItemModel.make()
    model.entitiesByName["Item"]?.attributesByName["code"]?.isOptional = false
    let container = NSPersistentContainer(name: "Valid", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let item = ItemModel.insert(code: nil, into: context)
      #expect(throws: CocoaError.self) { try context.save() }
      #expect(item.objectID.isTemporaryID)
      #expect(context.insertedObjects == [item])
      item.setValue("a", forKey: "code")
      try context.save()
      #expect(!item.objectID.isTemporaryID)
    }
  }

  @Test("A nested save is refused with 132001")
  func recursiveSave() throws {
    try world { _, context in
      final class Failure: @unchecked Sendable {
        var code: Int?
      }
      let failure = Failure()
      let token = NotificationCenter.default.addObserver(
        forName: .NSManagedObjectContextWillSave,
        object: context,
        queue: nil
      ) { _ in
        do { try context.save() } catch { failure.code = (error as NSError).code }
      }
      defer { NotificationCenter.default.removeObserver(token) }
      ItemModel.insert(code: "a", into: context)
      try context.save()
      #expect(failure.code == 132_001)
      try #expect(ItemModel.items(context) == ["a 0"])
    }
  }

  @Test("Observers of a save may save again after it")
  func saveAfterSave() throws {
    try world { _, context in
      final class Count: @unchecked Sendable {
        var saves = 0
      }
      let count = Count()
      let token = NotificationCenter.default.addObserver(
        forName: .NSManagedObjectContextDidSave,
        object: context,
        queue: nil
      ) { _ in
        count.saves += 1
        guard count.saves == 1 else { return }
        ItemModel.insert(code: "b", into: context)
        do { try context.save() } catch { Issue.record(error) }
      }
      defer { NotificationCenter.default.removeObserver(token) }
      ItemModel.insert(code: "a", into: context)
      try context.save()
      #expect(count.saves == 2)
      try #expect(ItemModel.items(context) == ["a 0", "b 0"])
    }
  }
}
