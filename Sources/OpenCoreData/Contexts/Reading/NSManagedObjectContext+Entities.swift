import Foundation

extension NSManagedObjectContext {
  /// The coordinator; throws where there is none.
  func requireCoordinator() throws -> NSPersistentStoreCoordinator {
    if let persistentStoreCoordinator { return persistentStoreCoordinator }
    throw CoreDataError.make(
      NSCoreDataError,
      "The context has no persistent store coordinator. Set persistentStoreCoordinator first."
    )
  }

  var model: NSManagedObjectModel? { persistentStoreCoordinator?.managedObjectModel }

  func entity(of type: NSManagedObject.Type) -> NSEntityDescription {
    if let lastClass, lastClass.type == ObjectIdentifier(type) { return lastClass.entity }
    if let known = entitiesByClass[ObjectIdentifier(type)] {
      lastClass = (ObjectIdentifier(type), known)
      return known
    }
    guard let model else {
      fatalError("The context has no coordinator, so \(type) has no entity in it.")
    }
    guard let template = ObjectTemplate.of(type, in: model) else {
      fatalError(
        "No NSEntityDescriptions in any model claim the NSManagedObject subclass '\(type)' so "
          + "+entity is confused. Have you loaded your NSManagedObjectModel yet ?\n"
          + "An NSManagedObject of class '\(type)' must have a valid NSEntityDescription.\n"
          + "The entity of a model in code names it: "
          + "entity.managedObjectClassName = NSStringFromClass(\(type).self)."
      )
    }
    entitiesByClass[ObjectIdentifier(type)] = template.layout.entity
    return template.layout.entity
  }
}
