import OpenCoreData

/// How the entities of one configuration are stored in records.
package final class ModelMapping: Sendable {
  private let mappings: [String: EntityMapping]
  /// The mappings by entity names of an earlier version of the model.
  private let formerMappings: [String: EntityMapping]
  /// The concrete and abstract entities of the configuration by name.
  package let entityNames: [String]
  private let deletionLevels: [String: Int]

  package init(model: NSManagedObjectModel, configuration: String?) {
    model.freeze()
    let entities = model.entities(forConfigurationName: configuration) ?? []
    // A configuration may contain children without their parent.
    mappings = Dictionary(
      entities.map { EntityMapping($0.layout) }.map { ($0.entityName, $0) },
      uniquingKeysWith: { first, _ in first }
    )
    entityNames = mappings.keys.sorted()
    deletionLevels = Self.deletionLevels(mappings)
    formerMappings = Dictionary(
      mappings.values.compactMap { mapping in
        mapping.layout.entity.renamingIdentifier.map { ($0, mapping) }
      }.filter { [mappings] in mappings[$0.0] == nil },
      uniquingKeysWith: { first, _ in first }
    )
  }

  package func entity(named name: String) -> EntityMapping? { mappings[name] }

  /// How many levels of other objects the delete rules of an entity's objects may delete.
  package func levelsOfDeletion(of entityName: String) -> Int { deletionLevels[entityName] ?? 0 }

  private static func deletionLevels(_ mappings: [String: EntityMapping]) -> [String: Int] {
    let names = mappings.keys.sorted()
    var levels: [String: Int] = [:]
    func level(of name: String) -> Int {
      if let known = levels[name] { return known }
      guard let layout = mappings[name]?.layout else { return 0 }
      // Objects may own each other.
      levels[name] = 0
      let deleted = layout.entity.relationshipsByName.values
        .filter { $0.deleteRule == .cascadeDeleteRule }.compactMap(\.destinationEntity)
      let members = names.filter { other in
        deleted.contains { mappings[other]?.layout.isMemberOrSub(of: $0) ?? false }
      }
      let found = members.map { 1 + level(of: $0) }.max() ?? 0
      levels[name] = found
      return found
    }
    for name in names { _ = level(of: name) }
    return levels
  }

  /// The mapping of a record, by its entity name or, if it has none, by its type.
  package func entity(recordType: String, entityName: String?) -> EntityMapping? {
    if let entityName, !entityName.isEmpty { return mapping(presentOrFormer: entityName) }
    guard recordType.hasPrefix(MirrorNames.prefix) else { return nil }
    return mapping(presentOrFormer: String(recordType.dropFirst(MirrorNames.prefix.count)))
  }

  /// Whether a record's field of the entity's name has the entity's name in the previous version of
  /// the model.
  package func isFormerName(_ value: MirrorValue?, of entity: EntityMapping) -> Bool {
    guard case .string(let name) = value, mappings[name] == nil else { return false }
    return formerMappings[name] === entity
  }

  private func mapping(presentOrFormer name: String) -> EntityMapping? {
    mappings[name] ?? formerMappings[name]
  }

  /// An edge with this model's names; nil if the model has no such relationship.
  ///
  /// Records keep the names of the model that wrote them.
  package func present(_ edge: Edge) -> Edge? {
    guard let first = present(edge.relationship.first),
      let second = present(edge.relationship.second)
    else { return nil }
    let relationship = EdgeRelationship(first, second)
    guard
      manyToMany(
        entityName: relationship.first.entityName,
        relationship: relationship.first.relationship
      )?.edge == relationship
    else { return nil }
    let isInOrder = relationship.first == first
    return Edge(
      relationship: relationship,
      firstRecord: isInOrder ? edge.firstRecord : edge.secondRecord,
      secondRecord: isInOrder ? edge.secondRecord : edge.firstRecord
    )
  }

  /// One side of an edge with this model's names; nil if the model has no such relationship.
  package func present(_ side: EdgeRelationship.Side) -> EdgeRelationship.Side? {
    guard let entity = mapping(presentOrFormer: side.entityName) else { return nil }
    let name =
      entity.manyToMany(side.relationship) != nil
      ? side.relationship
      : entity.formerNames.first { $0.value == side.relationship }?.key
    return name.map { EdgeRelationship.Side(entityName: entity.entityName, relationship: $0) }
  }

  /// The side of an edge with a relationship that an entity declares or inherits, under this model's
  /// name or the former one; nil if it has none.
  package func side(
    _ relationship: String,
    ofEntity entityName: String
  ) -> EdgeRelationship.Side? {
    guard let entity = mappings[entityName] else { return nil }
    let former = entity.formerNames.first { $0.value == relationship }?.key
    guard
      let found = entity.manyToMany(relationship) ?? former.flatMap(entity.manyToMany)
    else { return nil }
    return found.isFirst ? found.edge.first : found.edge.second
  }

  /// Whether an entity has a many-to-many relationship under a name, the present one or the former one.
  package func hasManyToMany(_ relationship: String) -> Bool {
    mappings.keys.contains { side(relationship, ofEntity: $0) != nil }
  }

  /// The many-to-many relationship of an edge, from the side of position 0.
  package func manyToMany(
    entityName: String,
    relationship: String
  ) -> ManyToManyMapping? {
    mappings[entityName]?.manyToMany(relationship)
  }

  /// The fields of exact decimals, prefixed with the names of their entities.
  package var exactFields: [String] {
    mappings.values.flatMap { mapping in
      mapping.attributes.compactMap(\.exactField).map { "\(mapping.entityName) \($0)" }
    }.sorted()
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
        keys.formUnion(attribute.fields)
      }
      for toOne in mapping.toOnes { keys.insert(toOne.field) }
      for former in mapping.formerNames.values {
        keys.insert(MirrorNames.field(former))
        keys.insert(MirrorNames.assetField(former))
        keys.insert(MirrorNames.exactField(former))
      }
    }
    return keys.sorted()
  }
}
