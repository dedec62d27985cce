import Foundation
import OpenCoreData
import Testing

/// A class that overrides the designated initializer without `required`, as generated classes do.
final class MetatypePlainItem: NSManagedObject {
  nonisolated(unsafe) static var made = 0

  override init(entity: NSEntityDescription, insertInto context: NSManagedObjectContext?) {
    Self.made += 1
    super.init(entity: entity, insertInto: context)
  }
}

final class MetatypeNamedItem: NSManagedObject {
  convenience init(code: String, context: NSManagedObjectContext) {
    self.init(context: context)
    setValue(code, forKey: "code")
  }

  static func make(in context: NSManagedObjectContext) -> Self { Self(context: context) }
}

protocol MetatypeCreatable: NSManagedObject {
  static func create(in context: NSManagedObjectContext) -> Self
}

extension MetatypeCreatable {
  static func create(in context: NSManagedObjectContext) -> Self {
    Self(context: context)
  }
}

extension MetatypeNamedItem: MetatypeCreatable {}

/// A class of no model.
final class MetatypeUnusedItem: NSManagedObject {}

@Suite("Creating objects and coordinators from metatypes")
struct MetatypeCreationTests {
  private func make<Object: NSManagedObject>(
    _ type: Object.Type,
    in context: NSManagedObjectContext
  ) -> Object {
    Object(context: context)
  }

  private func make<Object: NSManagedObject>(
    _ type: Object.Type,
    entity: NSEntityDescription
  ) -> Object {
    Object(entity: entity, insertInto: nil)
  }

  private func context(of type: NSManagedObject.Type) throws -> NSManagedObjectContext {
    let code = NSAttributeDescription()
    code.name = "code"
    code.attributeType = .stringAttributeType
    let entity = NSEntityDescription()
    entity.name = "Item"
    entity.managedObjectClassName = NSStringFromClass(type)
    entity.properties = [code]
    let model = NSManagedObjectModel()
    model.entities = [entity]
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    context.persistentStoreCoordinator = coordinator
    return context
  }

  @Test("A generic function creates an object of its type's class and entity")
  func generic() throws {
    let context = try context(of: MetatypeNamedItem.self)
    context.performAndWait {
      let item: NSManagedObject = make(MetatypeNamedItem.self, in: context)
      #expect(item is MetatypeNamedItem)
      #expect(item.entity.name == "Item")
      #expect(MetatypeNamedItem.make(in: context).managedObjectContext === context)
      #expect(MetatypeNamedItem.create(in: context).isInserted)
      #expect(
        MetatypeNamedItem(code: "a", context: context).value(forKey: "code") as? String == "a"
      )
      #expect(context.insertedObjects.count == 4)
      let loose = make(MetatypeNamedItem.self, entity: item.entity)
      #expect(loose.managedObjectContext == nil)
      #expect(MetatypeNamedItem(entity: item.entity, insertInto: context).isInserted)
    }
  }

  /// Packages ask for `entity().name ?? "Item"`, also before a container exists.
  @Test("The entity of a class that no model has is one without a name")
  func unused() {
    let entity = MetatypeUnusedItem.entity()
    #expect(entity.name == nil)
    #expect(entity.managedObjectClassName == NSStringFromClass(MetatypeUnusedItem.self))
  }

  @Test("An overridden designated initializer creates the object of a metatype")
  func overridden() throws {
    let context = try context(of: MetatypePlainItem.self)
    context.performAndWait {
      let before = MetatypePlainItem.made
      #expect(make(MetatypePlainItem.self, in: context).isInserted)
      #expect(MetatypePlainItem.made == before + 1)
      let item = MetatypePlainItem(context: context)
      #expect(make(MetatypePlainItem.self, entity: item.entity).entity === item.entity)
      #expect(MetatypePlainItem.made == before + 3)
    }
  }

  @Test("A coordinator is created from its metatype")
  func coordinator() {
    func make<Coordinator: NSPersistentStoreCoordinator>(_ type: Coordinator.Type) -> Coordinator {
      Coordinator(managedObjectModel: NSManagedObjectModel())
    }
    #expect(make(NSPersistentStoreCoordinator.self).persistentStores.isEmpty)
  }

  @Test("Identifiers and conflicts without objects can be created")
  func placeholders() {
    let first = NSManagedObjectID()
    #expect(first == first)
    #expect(first != NSManagedObjectID())
    #expect(first.isTemporaryID)
    #expect(first.persistentStore == nil)
    #expect(first.entity.name == nil)
    #expect(first.uriRepresentation().scheme == "x-coredata")
    #expect(NSConstraintConflict().conflictingObjects.isEmpty)
  }

  @Test("The class name of an entity can be set to nil, which means a plain object")
  func className() {
    let entity = NSEntityDescription()
    entity.managedObjectClassName = "Item"
    let name: String? = entity.managedObjectClassName
    #expect(name == "Item")
    entity.managedObjectClassName = nil
    #expect(entity.managedObjectClassName == "NSManagedObject")
  }
}
