import Foundation
import Synchronization

/// The compiled form of a frozen entity: its properties in numbered slots.
///
/// Attributes come first in a row, then to-one relationships; to-many relationships are numbered
/// separately. Inherited properties precede own ones, so the slots of a parent's attributes have
/// the same numbers in every subentity.
package final class EntityLayout: @unchecked Sendable {
  // Sendable: immutable, and made only of frozen descriptions. Unowned and unsafe: a frozen model
  // lives as long as the process, and slots are copied on the hot paths.

  package unowned(unsafe) let entity: NSEntityDescription
  package let entityName: String
  package let attributes: [AttributeSlot]
  package let toOnes: [RelationshipSlot]
  package let toManys: [RelationshipSlot]
  package let fetched: [NSFetchedPropertyDescription]
  /// The superentities, nearest first.
  package let ancestors: [NSEntityDescription]
  /// The data that objects of the entity share, created with the first object.
  let template = AtomicLazyReference<ObjectTemplate>()
  /// The template's address, 0 until it exists; every new object reads it.
  let templateAddress = Atomic<UInt>(0)
  /// Records the names that are looked up; set only on a layout created by ``KeyPathNames``, before
  /// another thread can use it.
  var recorder: NameRecorder?
  private let slots: [String: PropertySlot]
  let composites: [String: CompositeSlot]
  private let compositeNames: [Int: String]
  /// Retains the descriptions that slots reference without counting.
  private let leaves: [NSAttributeDescription]
  private let kinds: Set<ObjectIdentifier>

  init(entity: NSEntityDescription) {
    self.entity = entity
    entityName = entity.name ?? ""
    ancestors = entity.ancestors
    kinds = Set(([entity] + entity.ancestors).map(ObjectIdentifier.init))
    let ordered = Self.orderedProperties(of: entity)
    leaves = ordered.compactMap { $0 as? NSAttributeDescription }.flatMap(\.leaves)
    for leaf in leaves { leaf.isFrozen = true }
    attributes = leaves.enumerated()
      .map { AttributeSlot(index: $0.offset, description: $0.element) }
    let width = attributes.count
    let relationships = ordered.compactMap { $0 as? NSRelationshipDescription }
    toOnes = relationships.filter { !$0.isToMany }.enumerated().map {
      RelationshipSlot(index: $0.offset, rowIndex: width + $0.offset, description: $0.element)
    }
    toManys = relationships.filter(\.isToMany).enumerated().map {
      RelationshipSlot(index: $0.offset, rowIndex: nil, description: $0.element)
    }
    fetched = ordered.compactMap { $0 as? NSFetchedPropertyDescription }
    var slots: [String: PropertySlot] = [:]
    for slot in attributes { slots[slot.name] = .attribute(slot.index) }
    for slot in toOnes { slots[slot.name] = .toOne(slot.index) }
    for slot in toManys { slots[slot.name] = .toMany(slot.index) }
    for (index, property) in fetched.enumerated() { slots[property.name] = .fetched(index) }
    self.slots = slots
    var composites: [String: CompositeSlot] = [:]
    var compositeNames: [Int: String] = [:]
    for case let composite as NSCompositeAttributeDescription in ordered {
      let slot = CompositeSlot(composite, path: composite.name, slots: slots)
      composites[composite.name] = slot
      for leaf in slot.leaves { compositeNames[leaf] = composite.name }
    }
    self.composites = composites
    self.compositeNames = compositeNames
  }

  /// The number of values in a row: attributes and to-one relationships.
  package var rowWidth: Int { attributes.count + toOnes.count }

  /// The identity of the layout.
  package var identifier: ObjectIdentifier { ObjectIdentifier(self) }

  package func slot(named name: String) -> PropertySlot? {
    recorder?.names.append(name)
    return slots[name]
  }

  /// The composite attribute of a name; the leaves have slots of their own.
  package func composite(named name: String) -> CompositeSlot? {
    composites.isEmpty ? nil : composites[name]
  }

  /// The name of an attribute in the API: a leaf has the name of its composite.
  package func publicName(ofAttribute index: Int) -> String {
    compositeNames[index] ?? attributes[index].name
  }

  /// Whether the layout's entity is, or inherits from, another.
  package func isMemberOrSub(of entity: NSEntityDescription) -> Bool {
    kinds.contains(ObjectIdentifier(entity))
  }

  /// The entity and its descendants, parents first, including abstract ones.
  package var concreteSubentities: [NSEntityDescription] { entity.selfAndDescendants }

  /// The entity at the top of the hierarchy, whose table holds the rows.
  package var rootEntity: NSEntityDescription { ancestors.last ?? entity }

  /// Root first, each level sorted by name; a redeclared property keeps its first position.
  private static func orderedProperties(
    of entity: NSEntityDescription
  ) -> [NSPropertyDescription] {
    let byName = entity.propertiesByName
    var seen: Set<String> = []
    var result: [NSPropertyDescription] = []
    for level in entity.ancestors.reversed() + [entity] {
      let names = level.ownProperties.map(\.name).sorted(by: VersionHash.precedes)
      for name in names where seen.insert(name).inserted {
        if let property = byName[name] { result.append(property) }
      }
    }
    return result
  }
}

/// The position of a property in a layout.
package enum PropertySlot: Hashable, Sendable {
  case attribute(Int)
  case toOne(Int)
  case toMany(Int)
  case fetched(Int)
}

/// An attribute's position in a row, with what reading and writing it needs.
package struct AttributeSlot: @unchecked Sendable {
  // Sendable: immutable, and the description is frozen.

  /// The number of the attribute, which is also its index in a row.
  package let index: Int
  package let name: String
  package let type: NSAttributeType
  package let isTransient: Bool
  package let isOptional: Bool
  package let isDerived: Bool
  package unowned(unsafe) let description: NSAttributeDescription
  package let defaultRowValue: RowValue
  package let allowsExternalBinary: Bool
  package let preservesInHistory: Bool
  package let transformerName: String?

  init(index: Int, description: NSAttributeDescription) {
    self.index = index
    self.description = description
    name = description.name
    type = description.attributeType
    isTransient = description.isTransient
    isOptional = description.isOptional
    isDerived = description is NSDerivedAttributeDescription
    defaultRowValue = DefaultValue.rowValue(
      of: description.defaultValue,
      type: description.attributeType
    )
    allowsExternalBinary = description.allowsExternalBinaryDataStorage
    preservesInHistory = description.preservesValueInHistoryOnDeletion
    transformerName = description.valueTransformerName
  }
}

/// A relationship's position in a layout, with what following it needs.
package struct RelationshipSlot: @unchecked Sendable {
  // Sendable: immutable, and the descriptions are frozen.

  /// The number among the to-one or the to-many relationships.
  package let index: Int
  /// The index in a row; nil for a to-many.
  package let rowIndex: Int?
  package let name: String
  package unowned(unsafe) let description: NSRelationshipDescription
  package unowned(unsafe) let destinationEntity: NSEntityDescription
  package unowned(unsafe) let inverse: NSRelationshipDescription?
  package let inverseIsToMany: Bool
  package let isOrdered: Bool
  package let deleteRule: NSDeleteRule

  init(index: Int, rowIndex: Int?, description: NSRelationshipDescription) {
    self.index = index
    self.rowIndex = rowIndex
    self.description = description
    name = description.name
    guard let destination = description.destinationEntity else {
      preconditionFailure(
        "The relationship '\(description.name)' of the entity "
          + "'\(description.declaringEntity?.name ?? "")' has no destination entity."
      )
    }
    destinationEntity = destination
    inverse = description.inverseRelationship
    inverseIsToMany = description.inverseRelationship?.isToMany ?? false
    isOrdered = description.isOrdered
    deleteRule = description.deleteRule
  }

  /// The number among the to-many relationships; nil for a to-one.
  package var toManyIndex: Int? { rowIndex == nil ? index : nil }

  package var isToMany: Bool { rowIndex == nil }
}
