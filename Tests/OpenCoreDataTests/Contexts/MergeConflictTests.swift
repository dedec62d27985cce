import Foundation
import OpenCoreData
import Testing

@Suite("Conflicts as a merge policy receives and resolves them")
struct MergeConflictTests {
  /// A custom policy that records its calls.
  private final class NotingPolicy: NSMergePolicy, @unchecked Sendable {
    var asked: [String] = []
    var locking: [NSMergeConflict] = []
    var onLocking: ((NSMergeConflict) -> Void)?

    override func resolve(mergeConflicts list: [Any]) throws {
      asked.append("mergeConflicts")
      try super.resolve(mergeConflicts: list)
    }

    override func resolve(optimisticLockingConflicts list: [NSMergeConflict]) throws {
      asked.append("optimisticLockingConflicts")
      locking = list
      guard let onLocking else { return try super.resolve(optimisticLockingConflicts: list) }
      for conflict in list { onLocking(conflict) }
    }

    override func resolve(constraintConflicts list: [NSConstraintConflict]) throws {
      asked.append("constraintConflicts")
      try super.resolve(constraintConflicts: list)
    }
  }

  /// Reads the one item into a context.
  private func item(_ context: NSManagedObjectContext) throws -> NSManagedObject {
    let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
    request.returnsObjectsAsFaults = false
    return try #require(try context.fetch(request).first)
  }

  private func change(
    _ container: NSPersistentContainer,
    _ body: (NSManagedObjectContext, NSManagedObject) throws -> Void
  ) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      try body(context, item(context))
      try context.save()
    }
  }

  private func prepared(_ container: NSPersistentContainer) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      ItemModel.insert(code: "base", count: 1, into: context)
      try context.save()
    }
  }

  @Test("If another process wrote the store, the conflict has a persisted snapshot")
  func external() throws {
    let folder = try StoreFolder()
    let url = folder.url.appendingPathComponent("a.sqlite")
    let mine = try ItemModel.container(at: url)
    try prepared(mine)
    let context = mine.newBackgroundContext()
    try context.performAndWait {
      let object = try item(context)
      let other = try ItemModel.container(at: url)
      try change(other) { _, item in item.setValue("theirs", forKey: "code") }
      object.setValue("mine", forKey: "code")
      let error = try #require(throws: CocoaError.self) { try context.save() }
      #expect(error.code.rawValue == NSManagedObjectMergeError)
      #expect((error as NSError).domain == NSCocoaErrorDomain)
      let list = (error as NSError).userInfo["conflictList"] as? [NSMergeConflict]
      let conflict = try #require(list?.first)
      #expect(conflict.sourceObject === object)
      #expect(conflict.objectSnapshot?["code"] as? String == "base")
      #expect(conflict.cachedSnapshot?["code"] as? String == "base")
      #expect(conflict.persistedSnapshot?["code"] as? String == "theirs")
      #expect(conflict.persistedSnapshot?["box"] is NSNull)
      #expect(conflict.oldVersionNumber == 1)
      #expect(conflict.newVersionNumber == 2)
      #expect(object.value(forKey: "code") as? String == "mine")
    }
  }

  @Test("To-one relationships are object identifiers in snapshots")
  func relationships() throws {
    let container = try ItemModel.container()
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let item = ItemModel.insert(code: "a", into: context)
      let box = ItemModel.insert("Box", code: "b", into: context)
      item.setValue(box, forKey: "box")
      try context.save()
      try change(container) { _, item in item.setValue(5, forKey: "count") }
      item.setValue(6, forKey: "count")
      let error = try #require(throws: CocoaError.self) { try context.save() }
      let conflict = try #require(error.persistentStoreSaveConflicts?.first)
      #expect(conflict.objectSnapshot?["box"] as? NSManagedObjectID == box.objectID)
      #expect(conflict.cachedSnapshot?["count"] as? Int == 5)
      #expect(conflict.objectSnapshot?["items"] == nil)
    }
  }

  @Test("A conflict with a deleted row has version 0 and no snapshot")
  func gone() throws {
    let container = try ItemModel.container()
    try prepared(container)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let object = try item(context)
      try change(container) { context, item in context.delete(item) }
      object.setValue(9, forKey: "count")
      let error = try #require(throws: CocoaError.self) { try context.save() }
      let conflict = try #require(error.persistentStoreSaveConflicts?.first)
      #expect(conflict.newVersionNumber == 0)
      #expect(conflict.cachedSnapshot == nil)
      #expect(conflict.persistedSnapshot == nil)
      #expect(conflict.objectSnapshot?["code"] as? String == "base")
    }
  }

  @Test("A custom policy is called, and may leave the rest to its superclass")
  func custom() throws {
    let container = try ItemModel.container()
    try prepared(container)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let policy = NotingPolicy(merge: .mergeByPropertyObjectTrumpMergePolicyType)
      context.mergePolicy = policy
      let object = try item(context)
      try change(container) { _, item in
        item.setValue("theirs", forKey: "code")
        item.setValue(5, forKey: "count")
      }
      object.setValue("mine", forKey: "code")
      try context.save()
      #expect(policy.asked == ["mergeConflicts", "optimisticLockingConflicts"])
      try #expect(ItemModel.items(context) == ["mine 5"])
    }
  }

  @Test("Values that a custom policy sets in the object are saved")
  func customValues() throws {
    let container = try ItemModel.container()
    try prepared(container)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let policy = NotingPolicy(merge: .errorMergePolicyType)
      // A counter: both additions must be kept.
      policy.onLocking = { conflict in
        let base = conflict.objectSnapshot?["count"] as? Int ?? 0
        let theirs = conflict.cachedSnapshot?["count"] as? Int ?? 0
        let mine = conflict.sourceObject.value(forKey: "count") as? Int ?? 0
        conflict.sourceObject.setValue(mine + theirs - base, forKey: "count")
      }
      context.mergePolicy = policy
      let object = try item(context)
      try change(container) { _, item in item.setValue(11, forKey: "count") }
      object.setValue(6, forKey: "count")
      try context.save()
      #expect(!context.hasChanges)
    }
    let check = container.newBackgroundContext()
    try check.performAndWait { try #expect(ItemModel.items(check) == ["base 16"]) }
  }

  @Test("Objects marked for detection are compared although they have no changes")
  func detection() throws {
    let container = try ItemModel.container()
    try prepared(container)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let object = try item(context)
      ItemModel.insert("Box", code: "b", into: context)
      context.detectConflicts(for: object)
      try change(container) { _, item in item.setValue(2, forKey: "count") }
      let error = try #require(throws: CocoaError.self) { try context.save() }
      #expect(error.code.rawValue == NSManagedObjectMergeError)
      #expect(error.persistentStoreSaveConflicts?.first?.sourceObject === object)
      try #expect(ItemModel.items(container.newBackgroundContext(), "Box").isEmpty)

      context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      try context.save()
      #expect(object.value(forKey: "count") as? Int == 2)
      // It applies to the next save alone.
      try change(container) { _, item in item.setValue(3, forKey: "count") }
      context.mergePolicy = NSMergePolicy.error
      ItemModel.insert("Box", code: "c", into: context)
      try context.save()
    }
  }

  @Test("Objects whose rows did not change pass the detection")
  func detectionWithoutConflict() throws {
    let container = try ItemModel.container()
    try prepared(container)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      context.detectConflicts(for: try item(context))
      try context.save()
      ItemModel.insert(code: "other", into: context)
      try context.save()
    }
  }

  @Test("The policies by name have their types")
  func names() {
    #expect(NSMergePolicy.error.mergeType == .errorMergePolicyType)
    #expect(NSMergePolicy.rollback.mergeType == .rollbackMergePolicyType)
    #expect(NSMergePolicy.overwrite.mergeType == .overwriteMergePolicyType)
    #expect(
      NSMergePolicy.mergeByPropertyStoreTrump.mergeType == .mergeByPropertyStoreTrumpMergePolicyType
    )
    let named = NSMergeByPropertyObjectTrumpMergePolicy as? NSMergePolicy
    #expect(named == NSMergePolicy.mergeByPropertyObjectTrump)
    let context = NSManagedObjectContext(.privateQueue)
    #expect(context.mergePolicy as? NSMergePolicy == NSMergePolicy.error)
    context.mergePolicy = NSOverwriteMergePolicy
    #expect((context.mergePolicy as? NSMergePolicy)?.mergeType == .overwriteMergePolicyType)
  }
}
