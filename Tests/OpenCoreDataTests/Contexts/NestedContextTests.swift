import Foundation
import OpenCoreData
import Testing

@Suite("Nested contexts")
struct NestedContextTests {
  private let request = NSFetchRequest<NSManagedObject>(entityName: "Item")

  private func code(_ object: NSManagedObject?) -> String? {
    object?.value(forKey: "code") as? String
  }

  @Test("A child has its parent's coordinator and no other")
  func coordinator() throws {
    let container = try ItemModel.container()
    let child = container.viewContext.child()
    #expect(child.parent === container.viewContext)
    #expect(child.persistentStoreCoordinator === container.persistentStoreCoordinator)
  }

  @Test("A save goes one level up, and to the store only from the root")
  func levels() throws {
    let container = try ItemModel.container()
    let root = container.newBackgroundContext()
    let middle = root.child()
    let leaf = middle.child()
    let identifier = try leaf.performAndWait {
      let item = ItemModel.insert(code: "a", count: 1, into: leaf)
      try leaf.save()
      #expect(!leaf.hasChanges)
      return item.objectID
    }
    #expect(identifier.isTemporaryID)
    middle.performAndWait { #expect(middle.insertedObjects.map(code) == ["a"]) }
    root.performAndWait { #expect(!root.hasChanges) }
    try middle.performAndWait { try middle.save() }
    try root.performAndWait {
      #expect(root.insertedObjects.map(code) == ["a"])
      try #expect(ItemModel.items(container.newBackgroundContext()).isEmpty)
      try root.save()
    }
    try #expect(ItemModel.items(container.newBackgroundContext()) == ["a 1"])
  }

  @Test("Identifiers become permanent in the children when the root has saved")
  func permanentIdentifiers() throws {
    let container = try ItemModel.container()
    let root = container.newBackgroundContext()
    let middle = root.child()
    let leaf = middle.child()
    let (item, box) = try leaf.performAndWait {
      let item = ItemModel.insert(code: "a", into: leaf)
      let box = ItemModel.insert("Box", code: "b", into: leaf)
      item.setValue(box, forKey: "box")
      try leaf.save()
      return (item, box)
    }
    try middle.performAndWait { try middle.save() }
    try root.performAndWait { try root.save() }
    try leaf.performAndWait {
      #expect(!item.objectID.isTemporaryID)
      #expect(leaf.registeredObject(for: item.objectID) === item)
      try #expect(leaf.fetch(request) == [item])
      #expect(item.value(forKey: "box") as? NSManagedObject === box)
      #expect(box.value(forKey: "items") as? Set<NSManagedObject> == [item])
      leaf.refresh(item, mergeChanges: false)
      #expect(item.value(forKey: "box") as? NSManagedObject === box)
      item.setValue("changed", forKey: "code")
      try leaf.save()
    }
    try middle.performAndWait { try middle.save() }
    try root.performAndWait { try root.save() }
    try #expect(ItemModel.items(container.newBackgroundContext()) == ["changed 0"])
  }

  @Test("A child obtains permanent identifiers before a save, and after one")
  func obtaining() throws {
    let container = try ItemModel.container()
    let root = container.newBackgroundContext()
    let leaf = root.child()
    try leaf.performAndWait {
      let before = ItemModel.insert(code: "a", into: leaf)
      try leaf.obtainPermanentIDs(for: [before])
      #expect(!before.objectID.isTemporaryID)
      let after = ItemModel.insert(code: "b", into: leaf)
      try leaf.save()
      try leaf.obtainPermanentIDs(for: [after])
      #expect(!after.objectID.isTemporaryID)
      try root.performAndWait {
        #expect(Set(root.insertedObjects.map(\.objectID)) == [before.objectID, after.objectID])
        try root.save()
      }
      try #expect(Set(leaf.fetch(request)) == [before, after])
    }
  }

  @Test("A child finds its parents' unsaved objects: new, changed and deleted ones")
  func unsaved() throws {
    let container = try ItemModel.container()
    let root = container.newBackgroundContext()
    let middle = root.child()
    let leaf = middle.child()
    try root.performAndWait {
      for code in ["a", "b", "c"] { ItemModel.insert(code: code, into: root) }
      try root.save()
      ItemModel.insert(code: "d", into: root)
    }
    try middle.performAndWait {
      for object in try middle.fetch(request) {
        if code(object) == "a" { object.setValue("A", forKey: "code") }
        if code(object) == "b" { middle.delete(object) }
      }
      ItemModel.insert(code: "e", into: middle)
    }
    try leaf.performAndWait {
      try #expect(ItemModel.items(leaf) == ["A 0", "c 0", "d 0", "e 0"])
      try #expect(leaf.count(for: request) == 4)
      let some = NSFetchRequest<NSManagedObject>(entityName: "Item")
      some.predicate = NSPredicate(format: "code == %@", "A")
      try #expect(leaf.fetch(some).count == 1)
      some.predicate = NSPredicate(format: "code == %@", "a")
      try #expect(leaf.fetch(some).isEmpty)
      ItemModel.insert(code: "f", into: leaf)
      some.predicate = NSPredicate(format: "code >= %@", "d")
      some.sortDescriptors = [NSSortDescriptor(key: "code", ascending: false)]
      some.fetchLimit = 2
      try #expect(leaf.fetch(some).map(code) == ["f", "e"])
    }
  }

  @Test("Validation runs in the child, and a failure passes nothing on")
  func validation() throws {
    let model = ItemModel.make()
    model.entitiesByName["Item"]?.attributesByName["code"]?.isOptional = false
    let container = NSPersistentContainer(name: "Valid", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let root = container.newBackgroundContext()
    let leaf = root.child()
    try leaf.performAndWait {
      ItemModel.insert(code: nil, into: leaf)
      let error = try #require(throws: CocoaError.self) { try leaf.save() }
      #expect(error.code.rawValue == NSValidationMissingMandatoryPropertyError)
      #expect(leaf.hasChanges)
      ItemModel.insert(code: nil, into: leaf)
      let several = try #require(throws: CocoaError.self) { try leaf.save() }
      #expect(several.code.rawValue == NSValidationMultipleErrorsError)
      #expect(((several as NSError).userInfo[NSDetailedErrorsKey] as? [NSError])?.count == 2)
    }
    root.performAndWait { #expect(!root.hasChanges) }
  }

  @Test("An object of a child that its parent has deleted becomes a deleted object")
  func deletedInParent() throws {
    let container = try ItemModel.container()
    let root = container.newBackgroundContext()
    let leaf = root.child()
    let identifier = try root.performAndWait {
      let item = ItemModel.insert(code: "a", into: root)
      try root.save()
      return item.objectID
    }
    let held = leaf.performAndWait { leaf.object(with: identifier) }
    try root.performAndWait {
      root.delete(root.object(with: identifier))
      try root.save()
    }
    leaf.performAndWait {
      #expect(held.isFault)
      #expect(held.value(forKey: "code") == nil)
      #expect(held.isDeleted)
    }
  }

  @Test("A child that merges automatically sees its parent's saves and keeps its own changes")
  func automatic() throws {
    let container = try ItemModel.container()
    let root = container.newBackgroundContext()
    let leaf = root.child()
    leaf.automaticallyMergesChangesFromParent = true
    let item = try root.performAndWait {
      let item = ItemModel.insert(code: "a", count: 1, into: root)
      try root.save()
      return item
    }
    let identifier = item.objectID
    let own = leaf.performAndWait {
      let own = leaf.object(with: identifier)
      own.setValue(7, forKey: "count")
      return own
    }
    try root.performAndWait {
      item.setValue("b", forKey: "code")
      item.setValue(2, forKey: "count")
      try root.save()
    }
    leaf.performAndWait {}
    leaf.performAndWait {
      #expect(code(own) == "b")
      #expect(own.value(forKey: "count") as? Int == 7)
      #expect(leaf.updatedObjects == [own])
    }
  }

  @Test("A sibling merges a save into the parent from its notification")
  func sibling() throws {
    let container = try ItemModel.container()
    let root = container.newBackgroundContext()
    let (first, second) = (root.child(), root.child())
    let identifier = try root.performAndWait {
      let item = ItemModel.insert(code: "a", into: root)
      try root.save()
      return item.objectID
    }
    let seen = second.performAndWait {
      let seen = second.object(with: identifier)
      #expect(code(seen) == "a")
      return seen
    }
    let token = NotificationCenter.default.addObserver(
      forName: NSManagedObjectContext.didSaveObjectsNotification,
      object: first,
      queue: nil
    ) { note in second.performAndWait { second.mergeChanges(fromContextDidSave: note) } }
    defer { NotificationCenter.default.removeObserver(token) }
    try first.performAndWait {
      first.object(with: identifier).setValue("b", forKey: "code")
      try first.save()
    }
    second.performAndWait { #expect(code(seen) == "b") }
  }

  @Test("A child's rollback, reset and refresh do not change the parent")
  func leavingAlone() throws {
    let container = try ItemModel.container()
    let root = container.newBackgroundContext()
    let leaf = root.child()
    let item = root.performAndWait { ItemModel.insert(code: "a", into: root) }
    let identifier = item.objectID
    leaf.performAndWait {
      let own = leaf.object(with: identifier)
      own.setValue("b", forKey: "code")
      leaf.rollback()
      #expect(code(own) == "a")
      own.setValue("c", forKey: "code")
      leaf.refresh(own, mergeChanges: false)
      #expect(code(own) == "a")
      leaf.delete(own)
      leaf.reset()
    }
    root.performAndWait {
      #expect(code(item) == "a")
      #expect(!item.isDeleted)
    }
  }

  @Test("A row that the parent saves while a child runs has one object in the child")
  func oneObjectPerRow() throws {
    let library = try Library()
    let parent = library.context()
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = parent
    try child.performAndWait {
      let reader = Reader(context: child)
      reader.name = "Ada"
      try child.save()
      nonisolated(unsafe) var failure: (any Error)?
      let done = DispatchSemaphore(value: 0)
      // On another thread, so that the child's lane is busy while the keys are assigned.
      Thread.detachNewThread {
        parent.performAndWait {
          do { try parent.save() } catch { failure = error }
        }
        done.signal()
      }
      done.wait()
      if let failure { throw failure }
      let found = try child.fetch(NSFetchRequest<Reader>(entityName: "Reader"))
      #expect(found.count == 1)
      #expect(found.first === reader)
      #expect(!reader.objectID.isTemporaryID)
    }
  }
}
