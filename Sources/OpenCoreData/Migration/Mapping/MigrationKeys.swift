/// The variable of a value expression that stands for the migration manager.
public let NSMigrationManagerKey = "manager"
/// The variable of a value expression that stands for the source object.
public let NSMigrationSourceObjectKey = "source"
/// The variable of a value expression that stands for the destination object.
public let NSMigrationDestinationObjectKey = "destination"
/// The variable of a value expression that stands for the entity mapping.
public let NSMigrationEntityMappingKey = "entityMapping"
/// The variable of a value expression that stands for the property mapping.
public let NSMigrationPropertyMappingKey = "propertyMapping"
/// The variable of a value expression that stands for the entity migration policy.
public let NSMigrationEntityPolicyKey = "entityPolicy"

/// The names by which value expressions call the migration manager.
enum MigrationSelector {
  static let destinations = "destinationInstancesForEntityMappingNamed:sourceInstances:"
  static let destinationsForRelationship =
    "destinationInstancesForSourceRelationshipNamed:sourceInstances:"
  static let sources = "sourceInstancesForEntityMappingNamed:destinationInstances:"
  static let fetchRequest = "fetchRequestForSourceEntityNamed:predicateString:"
}
