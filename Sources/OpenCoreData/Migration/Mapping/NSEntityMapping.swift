import Foundation

/// How a migration handles the objects of an entity.
public enum NSEntityMappingType: UInt, Sendable, Hashable, CaseIterable {
  /// The type is not specified: the handling follows from the mapping's other values.
  case undefinedEntityMappingType = 0
  /// A custom migration policy handles them.
  case customEntityMappingType = 1
  /// The entity is new.
  case addEntityMappingType = 2
  /// The entity was removed.
  case removeEntityMappingType = 3
  /// The entity has not changed.
  case copyEntityMappingType = 4
  /// The entity has changed.
  case transformEntityMappingType = 5
}

/// How the objects of a source entity become objects of a destination entity.
///
/// ```swift
/// let mapping = try NSMappingModel.inferredMappingModel(
///   forSourceModel: oldModel,
///   destinationModel: newModel
/// )
/// for entityMapping in mapping.entityMappings where entityMapping.sourceEntityName == "Person" {
///   entityMapping.mappingType = .customEntityMappingType
///   entityMapping.entityMigrationPolicyClassName = NSStringFromClass(InitialPolicy.self)
/// }
/// ```
open class NSEntityMapping: NSObject {
  /// The name of the mapping, by which other mappings refer to it.
  ///
  /// A mapping without a name of its own, or whose name is set to nil, is named after its entities:
  /// `Person->Human`.
  // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
  open var name: String! {
    get {
      givenName
        ?? [sourceEntityName, destinationEntityName].compactMap { $0 }.joined(separator: "->")
    }
    set { givenName = newValue }
  }
  private var givenName: String?
  /// How the objects are handled.
  open var mappingType = NSEntityMappingType.undefinedEntityMappingType
  /// The entity whose objects are migrated.
  open var sourceEntityName: String?
  /// The version hash that the source entity must have for the mapping to be found.
  open var sourceEntityVersionHash: Data?
  /// The entity that objects are migrated to.
  open var destinationEntityName: String?
  /// The version hash that the destination entity must have for the mapping to be found.
  open var destinationEntityVersionHash: Data?
  /// How each attribute of the destination gets its value.
  open var attributeMappings: [NSPropertyMapping]?
  /// How each relationship of the destination gets its value.
  open var relationshipMappings: [NSPropertyMapping]?
  /// The expression that gives the objects to migrate; nil is all objects of the source entity.
  ///
  /// It is a fetch, `FETCH(FUNCTION($manager, "fetchRequestForSourceEntityNamed:predicateString:",
  /// …), $manager.sourceContext, NO)`; the fetch request alone does as well.
  open var sourceExpression: NSExpression?
  /// The developer's annotations of the mapping.
  open var userInfo: [AnyHashable: Any]?
  /// The name of the subclass of `NSEntityMigrationPolicy` that migrates the objects.
  ///
  /// On Linux it includes the module, `App.PostPolicy`; for a name without one, the app's own
  /// modules are searched.
  open var entityMigrationPolicyClassName: String?
  /// Whether the mapping was inferred from the two models.
  var isInferred = false

  /// Creates a mapping without entities.
  public required override init() {
    super.init()
  }

  /// Mappings with equal contents are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? NSEntityMapping else { return false }
    if other === self { return true }
    guard name == other.name, mappingType == other.mappingType,
      sourceEntityName == other.sourceEntityName,
      destinationEntityName == other.destinationEntityName
    else { return false }
    guard sourceEntityVersionHash == other.sourceEntityVersionHash,
      destinationEntityVersionHash == other.destinationEntityVersionHash,
      entityMigrationPolicyClassName == other.entityMigrationPolicyClassName
    else { return false }
    guard attributeMappings == other.attributeMappings,
      relationshipMappings == other.relationshipMappings,
      sourceExpression == other.sourceExpression
    else { return false }
    return NSDictionary(dictionary: userInfo ?? [:]).isEqual(to: other.userInfo ?? [:])
  }

  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(name)
    hasher.combine(sourceEntityName)
    hasher.combine(destinationEntityName)
    return hasher.finalize()
  }

  open override var description: String {
    "<NSEntityMapping: \(name ?? ""), \(sourceEntityName ?? "nil") to "
      + "\(destinationEntityName ?? "nil")>"
  }
}
