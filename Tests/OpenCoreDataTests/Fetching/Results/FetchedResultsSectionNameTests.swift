import Foundation
import OpenCoreData
import Synchronization
import Testing

/// An object whose section is computed, and which counts how often it is.
final class SectionedItem: NSManagedObject {
  static let asked = Mutex(0)

  override func value(forUndefinedKey key: String) -> Any? {
    guard key == "initial" else { return super.value(forUndefinedKey: key) }
    Self.asked.withLock { $0 += 1 }
    return (value(forKey: "title") as? String).map { String($0.prefix(1)) }
  }
}

/// A list without a delegate stays as it was fetched.
private final class Follower: NSObject, NSFetchedResultsControllerDelegate {}

@Suite("Names of sections")
struct FetchedResultsSectionNameTests {
  private static func container() throws -> NSPersistentContainer {
    let item = NSEntityDescription()
    item.name = "SectionedItem"
    item.managedObjectClassName = NSStringFromClass(SectionedItem.self)
    let title = NSAttributeDescription()
    title.name = "title"
    title.attributeType = .stringAttributeType
    item.properties = [title]
    let model = NSManagedObjectModel()
    model.entities = [item]
    let container = NSPersistentContainer(name: "Sections", managedObjectModel: model)
    let description = NSPersistentStoreDescription()
    description.type = NSInMemoryStoreType
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container
  }

  @Test("A change asks the changed objects for their sections, and no others")
  func changedNames() throws {
    let context = try Self.container().newBackgroundContext()
    let follower = Follower()
    try context.performAndWait {
      let items = (0..<60).map { number in
        let item = SectionedItem(context: context)
        item.setValue("\(number / 10)\(number % 10)", forKey: "title")
        return item
      }
      try context.save()
      let request = NSFetchRequest<SectionedItem>(entityName: "SectionedItem")
      request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
      let results = NSFetchedResultsController(
        fetchRequest: request,
        managedObjectContext: context,
        sectionNameKeyPath: "initial",
        cacheName: nil
      )
      results.delegate = follower
      try results.performFetch()
      let before = SectionedItem.asked.withLock { $0 }
      items[25].setValue("49b", forKey: "title")
      context.delete(items[0])
      context.processPendingChanges()
      #expect(SectionedItem.asked.withLock { $0 } - before <= 2)
      #expect(results.sections?.map(\.name) == (0..<6).map { "\($0)" })
      #expect(results.sections?.map(\.numberOfObjects) == [9, 10, 9, 10, 11, 10])
      #expect(results.sections?[4].objects?.last as? NSManagedObject === items[25])
    }
  }
}
