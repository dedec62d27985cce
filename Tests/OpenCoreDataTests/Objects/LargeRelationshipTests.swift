import Foundation
import OpenCoreData
import Testing

@Suite("Relationships with many members")
struct LargeRelationshipTests {
  @Test(
    "Random insertions and removals of members agree with a plain set",
    arguments: [1, 2, 3] as [UInt64]
  )
  func members(seed: UInt64) throws {
    let context = try LargeRelationshipModel.context()
    var random = SeededNumbers(seed: seed)
    try context.performAndWait {
      let group = NSEntityDescription.insertNewObject(forEntityName: "Group", into: context)
      let people = (0..<400).map { _ in
        NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
      }
      var expected: Set<NSManagedObject> = []
      for step in 0..<3000 {
        let person = people[Int.random(in: 0..<people.count, using: &random)]
        let groups = person.mutableSetValue(forKey: "groups")
        // The set grows in the first half and shrinks in the second.
        if Int.random(in: 0..<3000, using: &random) > step {
          groups.add(group)
          expected.insert(person)
        } else {
          groups.remove(group)
          expected.remove(person)
        }
        if step % 500 == 250 { try context.save() }
        guard step % 100 == 99 else { continue }
        let members = group.value(forKey: "people") as? Set<NSManagedObject>
        #expect(members == expected, "seed \(seed), step \(step)")
      }
      try context.save()
      context.refresh(group, mergeChanges: false)
      #expect(group.value(forKey: "people") as? Set<NSManagedObject> == expected, "seed \(seed)")
    }
  }

  @Test(
    "A change of only one side of a relationship never duplicates a member",
    arguments: [3, 100]
  )
  func primitives(count: Int) throws {
    let context = try LargeRelationshipModel.context()
    try context.performAndWait {
      func insert(_ name: String) -> NSManagedObject {
        NSEntityDescription.insertNewObject(forEntityName: name, into: context)
      }
      let group = insert("Group")
      try context.save()
      let people = (0..<count).map { _ in insert("Person") }
      for person in people { person.setValue(Set([group]), forKey: "groups") }
      // The group still has all members.
      for person in people { person.setPrimitiveValue(Set<NSManagedObject>(), forKey: "groups") }
      for person in people { person.setValue(Set([group]), forKey: "groups") }
      #expect(group.mutableSetValue(forKey: "people").count == count)
      #expect((group.value(forKey: "people") as? NSSet)?.count == count)
      #expect(group.objectIDs(forRelationshipNamed: "people").count == count)
      people[0].setValue(Set<NSManagedObject>(), forKey: "groups")
      #expect((group.value(forKey: "people") as? Set<NSManagedObject>) == Set(people.dropFirst()))
      try context.save()
      context.refreshAllObjects()
      #expect((group.value(forKey: "people") as? Set<NSManagedObject>) == Set(people.dropFirst()))
    }
  }
}

private enum LargeRelationshipModel {
  static func context() throws -> NSManagedObjectContext {
    let container = NSPersistentContainer(name: "Large", managedObjectModel: make())
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container.newBackgroundContext()
  }

  static func make() -> NSManagedObjectModel {
    let group = ModelParts.entity("Group")
    let person = ModelParts.entity("Person")
    ModelParts.relate(group, "people", toMany: true, person, "groups", toMany: true)
    let model = NSManagedObjectModel()
    model.entities = [group, person]
    return model
  }
}
