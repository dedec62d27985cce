import Foundation
import OpenCoreData

/// A model with one entity in each of several configurations, and a unique code.
enum ItemModel {
  static func make(uniqueCode: Bool = false) -> NSManagedObjectModel {
    let model = NSManagedObjectModel()
    let item = entity("Item")
    let box = NSRelationshipDescription()
    box.name = "box"
    box.maxCount = 1
    box.isOptional = true
    let holder = entity("Box")
    let items = NSRelationshipDescription()
    items.name = "items"
    items.maxCount = 0
    items.destinationEntity = item
    items.inverseRelationship = box
    box.destinationEntity = holder
    box.inverseRelationship = items
    item.properties.append(box)
    holder.properties.append(items)
    if uniqueCode { item.uniquenessConstraints = [["code"]] }
    let note = entity("Note")
    model.entities = [item, holder, note]
    model.setEntities([item, holder], forConfigurationName: "Items")
    model.setEntities([note], forConfigurationName: "Notes")
    return model
  }

  private static func entity(_ name: String) -> NSEntityDescription {
    let entity = NSEntityDescription()
    entity.name = name
    entity.managedObjectClassName = "NSManagedObject"
    let code = NSAttributeDescription()
    code.name = "code"
    code.attributeType = .stringAttributeType
    code.isOptional = true
    let count = NSAttributeDescription()
    count.name = "count"
    count.attributeType = .integer64AttributeType
    count.isOptional = true
    entity.properties = [code, count]
    return entity
  }

  /// A container whose store is removed when it is released.
  static func container(
    uniqueCode: Bool = false,
    at url: URL = URL(fileURLWithPath: "/dev/null")
  ) throws -> NSPersistentContainer {
    let container = NSPersistentContainer(
      name: "Items",
      managedObjectModel: make(uniqueCode: uniqueCode)
    )
    container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container
  }

  @discardableResult
  static func insert(
    _ name: String = "Item",
    code: String? = nil,
    count: Int = 0,
    into context: NSManagedObjectContext
  ) -> NSManagedObject {
    let object = NSEntityDescription.insertNewObject(forEntityName: name, into: context)
    object.setValue(code, forKey: "code")
    object.setValue(count, forKey: "count")
    return object
  }

  /// "code count" of every item, in order.
  static func items(
    _ context: NSManagedObjectContext,
    _ name: String = "Item"
  ) throws -> [String] {
    let request = NSFetchRequest<NSManagedObject>(entityName: name)
    request.sortDescriptors = [NSSortDescriptor(key: "code", ascending: true)]
    return try context.fetch(request).map { object in
      "\(object.value(forKey: "code") as? String ?? "-") \(object.value(forKey: "count") as? Int ?? -1)"
    }
  }
}

/// A folder for stores, removed when it is released.
final class StoreFolder {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory
      .appendingPathComponent("stores-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    try? FileManager.default.removeItem(at: url)
  }
}
