import Foundation
import OpenCoreData
import Testing

@Suite("Unique values")
struct ConstraintConflictTests {
  private func world(_ body: (NSManagedObjectContext) throws -> Void) throws {
    let container = try ItemModel.container(uniqueCode: true)
    let context = container.newBackgroundContext()
    try context.performAndWait { try body(context) }
  }

  private func conflicts(_ error: any Error) throws -> [NSConstraintConflict] {
    let error = error as NSError
    #expect(error.domain == NSCocoaErrorDomain)
    #expect(error.code == NSManagedObjectConstraintMergeError)
    return try #require(error.userInfo["conflictList"] as? [NSConstraintConflict])
  }

  @Test("A value that is already stored fails the save with 133021 and the stored object")
  func stored() throws {
    try world { context in
      let first = ItemModel.insert(code: "a", count: 1, into: context)
      try context.save()
      let second = ItemModel.insert(code: "a", count: 2, into: context)
      let error = try #require(throws: CocoaError.self) { try context.save() }
      let conflict = try #require(try conflicts(error).first)
      #expect(conflict.constraint == ["code"])
      #expect(conflict.constraintValues["code"] as? String == "a")
      #expect(conflict.databaseObject === first)
      #expect(conflict.databaseSnapshot?["count"] as? Int == 1)
      #expect(conflict.conflictingObjects == [second])
      #expect(conflict.conflictingSnapshots.first?["count"] as? Int == 2)
      #expect(context.insertedObjects == [second])
    }
  }

  @Test("New objects that share a value are in one conflict, without a stored object")
  func among() throws {
    try world { context in
      let objects = (0..<3).map { ItemModel.insert(code: "a", count: $0, into: context) }
      let error = try #require(throws: CocoaError.self) { try context.save() }
      let found = try conflicts(error)
      #expect(found.count == 1)
      #expect(found.first?.databaseObject == nil)
      #expect(found.first?.databaseSnapshot == nil)
      #expect(Set(found.first?.conflictingObjects ?? []) == Set(objects))
      #expect(found.first?.conflictingSnapshots.count == 3)
    }
  }

  @Test(
    "Policies keep one of several new objects with equal unique values",
    arguments: [
      NSMergePolicy.mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite, .rollback,
    ]
  )
  func oneStays(policy: NSMergePolicy) throws {
    try world { context in
      context.mergePolicy = policy
      for count in 0..<3 { ItemModel.insert(code: "a", count: count, into: context) }
      ItemModel.insert(code: "b", into: context)
      try context.save()
      #expect(!context.hasChanges)
      try #expect(ItemModel.items(context).count == 2)
    }
  }

  @Test(
    "If the value is stored, trump policies decide whose values are kept",
    arguments: [
      (NSMergePolicy.mergeByPropertyStoreTrump, "a 1"), (.rollback, "a 1"),
      (.mergeByPropertyObjectTrump, "a 2"), (.overwrite, "a 2"),
    ]
  )
  func trump(policy: NSMergePolicy, expected: String) throws {
    try world { context in
      ItemModel.insert(code: "a", count: 1, into: context)
      try context.save()
      context.mergePolicy = policy
      ItemModel.insert(code: "a", count: 2, into: context)
      try context.save()
      #expect(!context.hasChanges)
      try #expect(ItemModel.items(context) == [expected])
      context.reset()
      try #expect(ItemModel.items(context) == [expected])
    }
  }

  @Test("A value may move from a deleted object to a new one")
  func moves() throws {
    try world { context in
      let old = ItemModel.insert(code: "a", count: 1, into: context)
      try context.save()
      context.delete(old)
      ItemModel.insert(code: "a", count: 2, into: context)
      try context.save()
      try #expect(ItemModel.items(context) == ["a 2"])
    }
  }

  @Test("A nil value is not unique")
  func nothing() throws {
    try world { context in
      ItemModel.insert(into: context)
      ItemModel.insert(into: context)
      try context.save()
      try #expect(ItemModel.items(context).count == 2)
    }
  }

  private static let trumps = [
    NSMergePolicy.error, .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite,
    .rollback,
  ]

  @Test("A unique value may move to another object in one save", arguments: trumps)
  func movesOn(policy: NSMergePolicy) throws {
    try world { context in
      context.mergePolicy = policy
      let first = ItemModel.insert(code: "1", count: 1, into: context)
      let second = ItemModel.insert(code: "2", count: 2, into: context)
      try context.save()
      first.setValue("2", forKey: "code")
      second.setValue("3", forKey: "code")
      try context.save()
      context.reset()
      try #expect(ItemModel.items(context) == ["2 1", "3 2"])
    }
  }

  @Test("Two objects may exchange their unique values in one save", arguments: trumps)
  func exchange(policy: NSMergePolicy) throws {
    try world { context in
      context.mergePolicy = policy
      let first = ItemModel.insert(code: "1", count: 1, into: context)
      let second = ItemModel.insert(code: "2", count: 2, into: context)
      try context.save()
      first.setValue("2", forKey: "code")
      second.setValue("1", forKey: "code")
      try context.save()
      context.reset()
      try #expect(ItemModel.items(context) == ["1 2", "2 1"])
    }
  }

  @Test("Renumbering a hundred objects keeps all of them", arguments: trumps, [1, -1])
  func renumbering(policy: NSMergePolicy, step: Int) throws {
    try world { context in
      context.mergePolicy = policy
      let objects = (200..<300).map { ItemModel.insert(code: "\($0)", count: $0, into: context) }
      try context.save()
      for object in objects {
        let count = try #require(object.value(forKey: "count") as? Int)
        object.setValue("\(count + step)", forKey: "code")
      }
      try context.save()
      context.reset()
      try #expect(ItemModel.items(context) == (200..<300).map { "\($0 + step) \($0)" })
    }
  }

  @Test("A unique value may move from a changed object to a new one in one save")
  func movesToNew() throws {
    try world { context in
      let old = ItemModel.insert(code: "a", count: 1, into: context)
      let other = ItemModel.insert(code: "b", count: 2, into: context)
      try context.save()
      ItemModel.insert(code: "a", count: 3, into: context)
      old.setValue("b", forKey: "code")
      other.setValue("c", forKey: "code")
      try context.save()
      context.reset()
      try #expect(ItemModel.items(context) == ["a 3", "b 1", "c 2"])
    }
  }

  @Test(
    "If two stored objects get one value, store policies keep both unchanged",
    arguments: [NSMergePolicy.mergeByPropertyStoreTrump, .rollback]
  )
  func bothStay(policy: NSMergePolicy) throws {
    try world { context in
      let first = ItemModel.insert(code: "1", count: 1, into: context)
      let second = ItemModel.insert(code: "2", count: 2, into: context)
      try context.save()
      context.mergePolicy = policy
      first.setValue("3", forKey: "code")
      second.setValue("3", forKey: "code")
      try context.save()
      context.reset()
      try #expect(ItemModel.items(context) == ["1 1", "3 2"])
    }
  }

  @Test("Duplicate values after the save fail it with the objects that share them")
  func trulyDouble() throws {
    try world { context in
      let objects = (1...3).map { ItemModel.insert(code: "\($0)", count: $0, into: context) }
      try context.save()
      objects[0].setValue("2", forKey: "code")
      objects[1].setValue("3", forKey: "code")
      let error = try #require(throws: CocoaError.self) { try context.save() }
      let conflict = try #require(try conflicts(error).first)
      #expect(conflict.databaseObject === objects[2])
      #expect(conflict.conflictingObjects == [objects[1]])
      context.rollback()
      try #expect(ItemModel.items(context) == ["1 1", "2 2", "3 3"])
    }
  }

  @Test(
    "If the store wins, a list that cannot be shifted keeps its values",
    arguments: [NSMergePolicy.mergeByPropertyStoreTrump, .rollback]
  )
  func blockedShift(policy: NSMergePolicy) throws {
    try world { context in
      func code(_ number: Int) -> String { String(1000 + number) }
      let objects = (1...60).map { ItemModel.insert(code: code($0), count: $0, into: context) }
      try context.save()
      let other = NSManagedObjectContext(.privateQueue)
      other.persistentStoreCoordinator = context.persistentStoreCoordinator
      try other.performAndWait {
        ItemModel.insert(code: code(61), count: 61, into: other)
        try other.save()
      }
      context.mergePolicy = policy
      for (index, object) in objects.enumerated() {
        object.setValue(code(index + 2), forKey: "code")
      }
      try context.save()
      #expect(!context.hasChanges)
      try #expect(ItemModel.items(context) == (1...61).map { "\(code($0)) \($0)" })
    }
  }

  @Test("Two objects may exchange values from which a unique derived attribute is computed")
  func derived() throws {
    let model = NSManagedObjectModel()
    let item = ModelParts.entity(
      "Item",
      [
        ModelParts.text("name"),
        ModelParts.derived("plain", .stringAttributeType, "canonical:(name)"),
      ]
    )
    item.managedObjectClassName = "NSManagedObject"
    item.uniquenessConstraints = [["plain"]]
    model.entities = [item]
    let folder = try StoreFolder()
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    try coordinator.addPersistentStore(
      type: .sqlite,
      at: folder.url.appendingPathComponent("items.sqlite")
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    try context.performAndWait {
      let objects = ["A", "B"].map { name in
        let made = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
        made.setValue(name, forKey: "name")
        return made
      }
      try context.save()
      objects[0].setValue("B", forKey: "name")
      objects[1].setValue("A", forKey: "name")
      try context.save()
      context.reset()
      let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
      request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
      let found = try context.fetch(request).map { object in
        ["name", "plain"].map { object.value(forKey: $0) as? String ?? "-" }.joined()
      }
      #expect(found == ["Aa", "Bb"])
    }
  }

  @Test("Relationships of a new sub-entity's object move to the stored object that is kept")
  func subentity() throws {
    let model = NSManagedObjectModel()
    let item = ModelParts.entity("Item", [ModelParts.text("code") { $0.isOptional = true }])
    let part = ModelParts.entity("Part", [ModelParts.text("name") { $0.isOptional = true }])
    ModelParts.relate(item, "parts", toMany: true, rule: .cascadeDeleteRule, part, "item")
    let special = ModelParts.entity("Special", parent: item)
    for entity in [item, part, special] { entity.managedObjectClassName = "NSManagedObject" }
    for relationship in item.relationshipsByName.values { relationship.isOptional = true }
    for relationship in part.relationshipsByName.values { relationship.isOptional = true }
    item.uniquenessConstraints = [["code"]]
    model.entities = [item, part, special]
    let folder = try StoreFolder()
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    try coordinator.addPersistentStore(
      type: .sqlite,
      at: folder.url.appendingPathComponent("items.sqlite")
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    try context.performAndWait {
      func insert(_ name: String) -> NSManagedObject {
        NSEntityDescription.insertNewObject(forEntityName: name, into: context)
      }
      let stored = insert("Item")
      stored.setValue("a", forKey: "code")
      try context.save()
      let new = insert("Special")
      new.setValue("a", forKey: "code")
      let part = insert("Part")
      part.setValue(new, forKey: "item")
      try context.save()
      #expect(!part.isDeleted)
      #expect(part.value(forKey: "item") as? NSManagedObject === stored)
      try #expect(context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Part")) == 1)
      try #expect(context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Item")) == 1)
    }
  }
}
