import OpenCoreData

/// A to-one relationship that a record stores as the destination's record name.
package struct ToOneMapping: @unchecked Sendable {
  // Sendable: the descriptions are immutable.

  package let name: String
  /// The row index.
  package let index: Int
  package let field: String
  package let destinationEntity: NSEntityDescription
  package let description: NSRelationshipDescription
  /// For a one-to-one: the inverse relationship.
  package let partner: NSRelationshipDescription?
  /// For a one-to-one: whether this side decides when both sides differ.
  package let isDeciding: Bool

  init(_ slot: RelationshipSlot) {
    guard let rowIndex = slot.rowIndex else {
      preconditionFailure("The relationship '\(slot.name)' is a to-many.")
    }
    name = slot.name
    index = rowIndex
    field = MirrorNames.field(slot.name)
    destinationEntity = slot.destinationEntity
    description = slot.description
    partner = slot.inverseIsToMany ? nil : slot.inverse
    isDeciding =
      slot.inverse.map { EdgeRelationship(slot.description, $0).startsWith(slot.description) }
      ?? true
  }

  package var isOneToOne: Bool { partner != nil }
}

/// A many-to-many relationship, whose edges are records of their own.
package struct ManyToManyMapping: @unchecked Sendable {
  // Sendable: the descriptions are immutable.

  package let name: String
  package let description: NSRelationshipDescription
  package let edge: EdgeRelationship
  /// Whether objects of this entity are at position 0 of the edge.
  package let isFirst: Bool

  init?(_ slot: RelationshipSlot) {
    guard slot.isToMany, slot.inverseIsToMany, let inverse = slot.inverse else { return nil }
    name = slot.name
    description = slot.description
    edge = EdgeRelationship(slot.description, inverse)
    isFirst = edge.startsWith(slot.description)
  }
}

/// How the objects of one concrete entity are stored in records.
package final class EntityMapping: @unchecked Sendable {
  // Sendable: immutable, and so is the layout.

  package let layout: EntityLayout
  package let entityName: String
  package let recordType: String
  package let attributes: [AttributeMapping]
  package let toOnes: [ToOneMapping]
  package let manyToManys: [ManyToManyMapping]
  /// The properties' names in an earlier version of the model, where they differ.
  package let formerNames: [String: String]
  private let attributesByName: [String: AttributeMapping]
  private let toOnesByName: [String: ToOneMapping]
  private let manyToManysByName: [String: ManyToManyMapping]

  package init(_ layout: EntityLayout) {
    self.layout = layout
    entityName = layout.entityName
    recordType = MirrorNames.prefix + (layout.rootEntity.name ?? "")
    attributes = layout.attributes.compactMap(AttributeMapping.init)
    toOnes = layout.toOnes.map(ToOneMapping.init)
    manyToManys = layout.toManys.compactMap(ManyToManyMapping.init)
    formerNames = Self.formerNames(layout)
    attributesByName = Dictionary(uniqueKeysWithValues: attributes.map { ($0.name, $0) })
    toOnesByName = Dictionary(uniqueKeysWithValues: toOnes.map { ($0.name, $0) })
    manyToManysByName = Dictionary(uniqueKeysWithValues: manyToManys.map { ($0.name, $0) })
  }

  /// A former name that another property of the entity has now is ignored.
  private static func formerNames(_ layout: EntityLayout) -> [String: String] {
    let attributes = layout.attributes.map { ($0.name, $0.description.renamingIdentifier) }
    let relationships = (layout.toOnes + layout.toManys).map {
      ($0.name, $0.description.renamingIdentifier)
    }
    let present = Set((attributes + relationships).map(\.0))
    var names: [String: String] = [:]
    for case (let name, let former?) in attributes + relationships
    where !former.isEmpty && !present.contains(former) { names[name] = former }
    return names
  }

  package func attribute(_ name: String) -> AttributeMapping? { attributesByName[name] }
  package func toOne(_ name: String) -> ToOneMapping? { toOnesByName[name] }
  package func manyToMany(_ name: String) -> ManyToManyMapping? { manyToManysByName[name] }

  /// The properties that have fields in the record, in row order.
  package var fieldProperties: [String] { attributes.map(\.name) + toOnes.map(\.name) }

  /// The changed properties that have fields in the record.
  package func fieldProperties(in names: some Sequence<String>) -> Set<String> {
    Set(names.filter { attributesByName[$0] != nil || toOnesByName[$0] != nil })
  }

  /// The changed properties that are many-to-many relationships.
  package func edgeProperties(in names: some Sequence<String>) -> Set<String> {
    Set(names.filter { manyToManysByName[$0] != nil })
  }
}
