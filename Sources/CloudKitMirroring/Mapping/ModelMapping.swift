import OpenCoreData

/// How the entities of one configuration stand in records.
package final class ModelMapping: Sendable {
  private let mappings: [String: EntityMapping]
  /// The concrete and abstract entities of the configuration by name.
  package let entityNames: [String]

  package init(model: NSManagedObjectModel, configuration: String?) {
    model.freeze()
    let entities = model.entities(forConfigurationName: configuration) ?? []
    // A parent may be left out of a configuration that lists its children.
    mappings = Dictionary(
      entities.map { EntityMapping($0.layout) }.map { ($0.entityName, $0) },
      uniquingKeysWith: { first, _ in first }
    )
    entityNames = mappings.keys.sorted()
  }

  package func entity(named name: String) -> EntityMapping? { mappings[name] }

  /// The mapping for a record, by its entity name or, where it has none, by its type.
  package func entity(recordType: String, entityName: String?) -> EntityMapping? {
    if let entityName, !entityName.isEmpty { return mappings[entityName] }
    guard recordType.hasPrefix(MirrorNames.prefix) else { return nil }
    return mappings[String(recordType.dropFirst(MirrorNames.prefix.count))]
  }

  /// The many-to-many relationship that an edge names, from the side of position 0.
  package func manyToMany(
    entityName: String,
    relationship: String
  ) -> ManyToManyMapping? {
    mappings[entityName]?.manyToMany(relationship)
  }

  /// Every field name that an import reads.
  package var desiredKeys: [String] {
    var keys: Set<String> = [
      MirrorNames.entityName, MirrorNames.edgeEntityNames, MirrorNames.edgeRecordNames,
      MirrorNames.edgeRelationships, MirrorNames.moveReceipt,
      MirrorNames.moveReceipt + MirrorNames.assetSuffix,
    ]
    for mapping in mappings.values {
      for attribute in mapping.attributes {
        keys.insert(attribute.field)
        if let asset = attribute.assetField { keys.insert(asset) }
      }
      for toOne in mapping.toOnes { keys.insert(toOne.field) }
    }
    return keys.sorted()
  }
}
