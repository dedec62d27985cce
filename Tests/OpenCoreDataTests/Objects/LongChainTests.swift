import Foundation
import OpenCoreData
import Testing

@Suite("Long chains of objects")
struct LongChainTests {
  private static func model() -> NSManagedObjectModel {
    let node = NSEntityDescription()
    node.name = "Node"
    node.managedObjectClassName = "NSManagedObject"
    let number = NSAttributeDescription()
    number.name = "number"
    number.attributeType = .integer64AttributeType
    let previous = NSRelationshipDescription()
    previous.name = "previous"
    previous.maxCount = 1
    previous.isOptional = true
    previous.destinationEntity = node
    let next = NSRelationshipDescription()
    next.name = "next"
    next.maxCount = 0
    next.isOptional = true
    next.destinationEntity = node
    previous.inverseRelationship = next
    next.inverseRelationship = previous
    node.properties = [number, previous, next]
    let model = NSManagedObjectModel()
    model.entities = [node]
    return model
  }

  /// A store of versions, each with the one before it.
  private static func container(count: Int) throws -> NSPersistentContainer {
    let container = NSPersistentContainer(name: "Chain", managedObjectModel: model())
    let description = NSPersistentStoreDescription()
    description.type = NSInMemoryStoreType
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    let context = container.newBackgroundContext()
    try context.performAndWait {
      var last: NSManagedObject?
      for number in 0..<count {
        let node = NSEntityDescription.insertNewObject(forEntityName: "Node", into: context)
        node.setValue(number, forKey: "number")
        node.setValue(last, forKey: "previous")
        last = node
      }
      try context.save()
    }
    return container
  }

  /// Reads a relationship of all objects, and releases the objects in their order, on a thread with a small stack.
  @Test("The last reference to a long chain is released", arguments: ["previous", "next"])
  func release(relationship: String) async throws {
    let container = try Self.container(count: 8_000)
    let left: Int = await withCheckedContinuation { continuation in
      let thread = Thread {
        let context = container.newBackgroundContext()
        context.performAndWait {
          let request = NSFetchRequest<NSManagedObject>(entityName: "Node")
          request.sortDescriptors = [
            NSSortDescriptor(key: "number", ascending: relationship == "previous")
          ]
          var nodes = (try? context.fetch(request)) ?? []
          for node in nodes {
            let value = node.value(forKey: relationship)
            if let members = value as? NSSet { precondition(members.count <= 1) }
          }
          nodes = []
        }
        continuation.resume(
          returning: context.performAndWait { context.registeredObjects.count }
        )
      }
      thread.stackSize = 512 * 1024
      thread.start()
    }
    #expect(left == 0)
  }
}
