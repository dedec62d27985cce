import Foundation
import OpenCoreData
import Testing

@Suite("Relationships of many members")
struct LargeRelationshipTests {
  @Test(
    "Members that come and go at random are those of a plain set",
    arguments: [1, 2, 3] as [UInt64]
  )
  func members(seed: UInt64) throws {
    let model = LargeRelationshipModel.make()
    let container = NSPersistentContainer(name: "Large", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    let context = container.newBackgroundContext()
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
        // The bag grows in the first half and shrinks in the second.
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
}

private enum LargeRelationshipModel {
  static func make() -> NSManagedObjectModel {
    let group = ModelParts.entity("Group")
    let person = ModelParts.entity("Person")
    ModelParts.relate(group, "people", toMany: true, person, "groups", toMany: true)
    let model = NSManagedObjectModel()
    model.entities = [group, person]
    return model
  }
}
