/// The variable of the migration manager in a value expression.
public let NSMigrationManagerKey = "manager"
/// The variable of the source object in a value expression.
public let NSMigrationSourceObjectKey = "source"
/// The variable of the destination object in a value expression.
public let NSMigrationDestinationObjectKey = "destination"
/// The variable of the entity mapping in a value expression.
public let NSMigrationEntityMappingKey = "entityMapping"
/// The variable of the property mapping in a value expression.
public let NSMigrationPropertyMappingKey = "propertyMapping"
/// The variable of the entity migration policy in a value expression.
public let NSMigrationEntityPolicyKey = "entityPolicy"

/// The names by which value expressions call the migration manager.
enum MigrationSelector {
  static let destinations = "destinationInstancesForEntityMappingNamed:sourceInstances:"
  static let destinationsForRelationship =
    "destinationInstancesForSourceRelationshipNamed:sourceInstances:"
  static let sources = "sourceInstancesForEntityMappingNamed:destinationInstances:"
  /// Stands for an archived expression that cannot be read; the argument is the name of its class.
  static let unreadable = "unreadableExpression:"
  static let fetchRequest = "fetchRequestForSourceEntityNamed:predicateString:"
}
