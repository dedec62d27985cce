import Foundation

/// How the objects of one entity are migrated; subclasses override its steps.
///
/// ```swift
/// final class InitialPolicy: NSEntityMigrationPolicy {
///   override func createDestinationInstances(
///     forSource sInstance: NSManagedObject,
///     in mapping: NSEntityMapping,
///     manager: NSMigrationManager
///   ) throws {
///     try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
///     let made = manager.destinationInstances(
///       forEntityMappingName: mapping.name ?? "",
///       sourceInstances: [sInstance]
///     )
///     let name = sInstance.value(forKey: "name") as? String ?? "?"
///     for person in made { person.setValue(String(name.prefix(1)), forKey: "initial") }
///   }
/// }
/// ```
///
/// For each entity mapping the manager creates one policy and calls it in three rounds over all
/// mappings: objects are created, relationships are set, the result is validated. All calls are
/// made on the migrating thread.
open class NSEntityMigrationPolicy: NSObject {
  /// Creates a policy; the migration manager calls it on the class with the mapping's policy class
  /// name.
  public required override init() {
    super.init()
  }

  /// Called before the objects of a mapping are created.
  open func begin(_ mapping: NSEntityMapping, with manager: NSMigrationManager) throws {}

  /// Creates the destination objects of a source object.
  ///
  /// This one creates an object of the destination entity, sets its attributes by the mapping's
  /// value expressions, and associates the two. An override that does not call it must call
  /// `associate(sourceInstance:withDestinationInstance:for:)` itself where relationships are to
  /// find the object.
  open func createDestinationInstances(
    forSource sInstance: NSManagedObject,
    in mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    guard let entity = manager.destinationEntity(for: mapping) else { return }
    let destination = NSEntityDescription.insertNewObject(
      forEntityName: entity.name ?? "",
      into: manager.destinationContext
    )
    let values = MappingValues(policy: self, mapping: mapping, manager: manager)
    try values.setAttributes(of: destination, from: sInstance)
    manager.associate(
      sourceInstance: sInstance,
      withDestinationInstance: destination,
      for: mapping
    )
  }

  /// Called after the objects of a mapping were created.
  open func endInstanceCreation(
    forMapping mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {}

  /// Sets the relationships of an object that this mapping created.
  open func createRelationships(
    forDestination dInstance: NSManagedObject,
    in mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    let source = manager.associations.sources(of: [dInstance], by: mapping).first
    let values = MappingValues(policy: self, mapping: mapping, manager: manager)
    try values.setRelationships(of: dInstance, from: source)
  }

  /// Called after the relationships of a mapping were set.
  open func endRelationshipCreation(
    forMapping mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {}

  /// Called after all objects and relationships were created, before the destination is saved.
  open func performCustomValidation(
    forMapping mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {}

  /// Called when a mapping is done.
  open func end(_ mapping: NSEntityMapping, manager: NSMigrationManager) throws {}

  /// Evaluates a function that a value expression calls on the policy, `FUNCTION($entityPolicy,
  /// "fullName:", $source)`.
  ///
  /// **Differs from Core Data:** Swift on Linux calls no method by its name, so a policy with
  /// functions of its own overrides this method and selects them by `name`.
  open func perform(_ name: String, arguments: [Any?]) throws -> Any? {
    throw MigrationError.make(
      NSEntityMigrationPolicyError,
      ["reason": "-[\(type(of: self)) \(name)]: unrecognized selector"]
    )
  }
}

extension NSEntityMigrationPolicy: SelectorResponding {
  package func respond(to selector: String, arguments: [Any?]) throws -> Any? {
    try perform(selector, arguments: arguments)
  }
}
