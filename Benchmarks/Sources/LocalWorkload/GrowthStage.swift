import Foundation
import OpenCoreData

#if canImport(Glibc)
import Glibc
#endif

/// A folder with a store for one measurement of a `GrowthShape`.
final class GrowthStage {
  private let folder: URL
  private var items = 0

  init() throws {
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-growth-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  func remove() { try? FileManager.default.removeItem(at: folder) }

  /// What the processor did for this process during the body, in seconds.
  static func measure(_ body: () throws -> Void) rethrows -> Double {
    let start = processorTime
    try body()
    return processorTime - start
  }

  private static var processorTime: Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// A context on the store, which a coordinator of its own has opened.
  func context() throws -> NSManagedObjectContext {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model)
    try coordinator.addPersistentStore(
      type: .sqlite,
      at: folder.appendingPathComponent("growth.sqlite"),
      options: [NSPersistentHistoryTrackingKey: true]
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    return context
  }

  func close(_ context: NSManagedObjectContext) throws {
    guard let coordinator = context.persistentStoreCoordinator else { return }
    for store in coordinator.persistentStores { try coordinator.remove(store) }
  }

  @discardableResult
  func item(_ hub: NSManagedObject?, _ context: NSManagedObjectContext) -> NSManagedObject {
    let item = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
    items += 1
    item.setValue("item \(items % 100)", forKey: "name")
    if let hub { item.setValue(hub, forKey: "hub") }
    return item
  }

  func hub(_ size: Int, _ context: NSManagedObjectContext) -> NSManagedObject {
    let hub = NSEntityDescription.insertNewObject(forEntityName: "Hub", into: context)
    for number in 0..<size {
      let item = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
      item.setValue("item \(number)", forKey: "name")
      item.setValue(number, forKey: "number")
      item.setValue(hub, forKey: "hub")
    }
    return hub
  }

  /// Items each of which owns the next; the identifier of the first, once they are saved.
  func chain(_ size: Int, _ context: NSManagedObjectContext) -> NSManagedObjectID {
    var next: NSManagedObject?
    for _ in 0..<size {
      let item = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
      item.setValue(next, forKey: "next")
      next = item
    }
    guard let next else { preconditionFailure("A chain has at least one item.") }
    // A failure shows in the save that follows.
    try? context.obtainPermanentIDs(for: [next])
    return next.objectID
  }

  /// Changes an ordered relationship and saves.
  func ordered(
    _ size: Int,
    isFilled: Bool = false,
    _ change: (NSMutableOrderedSet, [NSManagedObject]) -> Void
  ) throws -> Double {
    let context = try context()
    return try context.performAndWait {
      let hub = NSEntityDescription.insertNewObject(forEntityName: "Hub", into: context)
      let items = (0..<size).map { _ in
        NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
      }
      if isFilled { hub.setValue(NSOrderedSet(array: items), forKey: "order") }
      try context.save()
      return try Self.measure {
        change(hub.mutableOrderedSetValue(forKey: "order"), items)
        try context.save()
      }
    }
  }

  // MARK: Model

  private static let model: NSManagedObjectModel = {
    let (hub, item) = (NSEntityDescription(), NSEntityDescription())
    hub.name = "Hub"
    item.name = "Item"
    let (name, number) = (NSAttributeDescription(), NSAttributeDescription())
    name.name = "name"
    name.attributeType = .stringAttributeType
    number.name = "number"
    number.attributeType = .integer64AttributeType
    for attribute in [name, number] { attribute.isOptional = true }
    item.properties = [name, number]
    relate(hub, "items", isToMany: true, .cascadeDeleteRule, item, "hub")
    relate(hub, "order", isToMany: true, isOrdered: true, .nullifyDeleteRule, item, "orderedIn")
    relate(item, "next", isToMany: false, .cascadeDeleteRule, item, "former")
    let model = NSManagedObjectModel()
    model.entities = [hub, item]
    return model
  }()

  private static func relate(
    _ source: NSEntityDescription,
    _ name: String,
    isToMany: Bool,
    isOrdered: Bool = false,
    _ rule: NSDeleteRule,
    _ destination: NSEntityDescription,
    _ inverseName: String
  ) {
    let (relationship, inverse) = (NSRelationshipDescription(), NSRelationshipDescription())
    relationship.name = name
    relationship.destinationEntity = destination
    relationship.maxCount = isToMany ? 0 : 1
    relationship.isOrdered = isOrdered
    relationship.deleteRule = rule
    inverse.name = inverseName
    inverse.destinationEntity = source
    inverse.maxCount = 1
    inverse.deleteRule = .nullifyDeleteRule
    for property in [relationship, inverse] { property.isOptional = true }
    relationship.inverseRelationship = inverse
    inverse.inverseRelationship = relationship
    source.properties.append(relationship)
    destination.properties.append(inverse)
  }
}
