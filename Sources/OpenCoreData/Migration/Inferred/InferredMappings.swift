import Foundation

/// The mapping model that describes what a migration in place does with SQL.
struct InferredMappings {
  let difference: ModelDifference

  func all() -> [NSEntityMapping] {
    let removed = difference.sources.filter { difference.destination(of: $0) == nil }
      .map(removal)
    return removed + difference.destinations.map { mapping(of: $0) }
  }

  private func removal(of source: NSEntityDescription) -> NSEntityMapping {
    let mapping = NSEntityMapping()
    mapping.name = "IEM_Remove_\(source.name ?? "")"
    mapping.mappingType = .removeEntityMappingType
    mapping.sourceEntityName = source.name
    mapping.sourceEntityVersionHash = source.versionHash
    return mapping
  }

  private func mapping(of destination: NSEntityDescription) -> NSEntityMapping {
    let mapping = NSEntityMapping()
    mapping.isInferred = true
    let name = destination.name ?? ""
    mapping.destinationEntityName = name
    mapping.destinationEntityVersionHash = destination.versionHash
    guard let source = difference.source(of: destination) else {
      mapping.name = "IEM_Add_\(name)"
      mapping.mappingType = .addEntityMappingType
      return mapping
    }
    let isCopy = source.versionHash == destination.versionHash
    mapping.name = isCopy ? "IEM_Copy_\(name)" : "IEM_Transform_\(name)"
    mapping.mappingType = isCopy ? .copyEntityMappingType : .transformEntityMappingType
    mapping.sourceEntityName = source.name
    mapping.sourceEntityVersionHash = source.versionHash
    mapping.sourceExpression = Self.allObjects(of: source.name ?? "")
    let properties = Self.mapped(destination).sorted { VersionHash.precedes($0.name, $1.name) }
    var attributes: [NSPropertyMapping] = []
    var relationships: [NSPropertyMapping] = []
    var formerNames: Set<String> = []
    for property in properties {
      let before = difference.source(ofPropertyNamed: property.name, in: destination)
      guard let before, !before.isTransient else { continue }
      formerNames.insert(before.name)
      let mapped = NSPropertyMapping()
      mapped.name = property.name
      if property is NSRelationshipDescription {
        mapped.valueExpression = Self.relationship(before.name)
        relationships.append(mapped)
      } else {
        mapped.valueExpression = Self.attribute(before.name)
        attributes.append(mapped)
      }
    }
    mapping.attributeMappings = attributes
    mapping.relationshipMappings = relationships
    let names = Set((attributes + relationships).compactMap(\.name))
    mapping.userInfo = [
      "mappedProperties": names,
      "addedProperties": Set(properties.map(\.name)).subtracting(names),
      "removedProperties": Set(Self.mapped(source).map(\.name)).subtracting(formerNames),
    ]
    return mapping
  }

  /// The properties of an entity whose values a migration moves.
  private static func mapped(_ entity: NSEntityDescription) -> [NSPropertyDescription] {
    entity.propertiesByName.values.filter {
      !$0.isTransient && !($0 is NSDerivedAttributeDescription)
        && !($0 is NSFetchedPropertyDescription)
    }
  }

  /// The value of one property of the source, `$source.name`.
  static func attribute(_ name: String) -> NSExpression {
    NSExpression(tree: .keyPath(.variable(NSMigrationSourceObjectKey), [name]))
  }

  /// The destination objects of those that the source's relationship refers to.
  static func relationship(_ name: String) -> NSExpression {
    NSExpression(
      tree: .call(
        .variable(NSMigrationManagerKey),
        MigrationSelector.destinationsForRelationship,
        [.value(name), .keyPath(.variable(NSMigrationSourceObjectKey), [name])]
      )
    )
  }

  static func allObjects(of entity: String) -> NSExpression {
    NSExpression(
      tree: .fetch(
        .call(
          .variable(NSMigrationManagerKey),
          MigrationSelector.fetchRequest,
          [.value(entity), .value("TRUEPREDICATE")]
        ),
        .keyPath(.variable(NSMigrationManagerKey), ["sourceContext"]),
        false
      )
    )
  }
}
