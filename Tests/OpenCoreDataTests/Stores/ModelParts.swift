import Foundation
import OpenCoreData

/// Short functions for describing models in tests.
enum ModelParts {
  static func entity(
    _ name: String,
    class type: NSManagedObject.Type? = nil,
    parent: NSEntityDescription? = nil,
    _ properties: [NSPropertyDescription] = []
  ) -> NSEntityDescription {
    let entity = NSEntityDescription()
    entity.name = name
    if let type { entity.managedObjectClassName = NSStringFromClass(type) }
    entity.properties = properties
    if let parent { parent.subentities += [entity] }
    return entity
  }

  static func attribute(
    _ name: String,
    _ type: NSAttributeType,
    _ change: (NSAttributeDescription) -> Void = { _ in }
  ) -> NSAttributeDescription {
    let attribute = NSAttributeDescription()
    attribute.name = name
    attribute.attributeType = type
    change(attribute)
    return attribute
  }

  static func text(
    _ name: String,
    former: String? = nil,
    _ change: (NSAttributeDescription) -> Void = { _ in }
  ) -> NSAttributeDescription {
    attribute(name, .stringAttributeType) {
      if let former { $0.renamingIdentifier = former }
      change($0)
    }
  }

  static func number(
    _ name: String,
    _ change: (NSAttributeDescription) -> Void = { _ in }
  ) -> NSAttributeDescription {
    attribute(name, .integer64AttributeType, change)
  }

  static func derived(
    _ name: String,
    _ type: NSAttributeType,
    _ derivation: String
  ) -> NSDerivedAttributeDescription {
    let attribute = NSDerivedAttributeDescription()
    attribute.name = name
    attribute.attributeType = type
    attribute.derivationSource = ParsedExpressionSource(format: derivation)
    return attribute
  }

  /// Makes two relationships inverses of each other, or one without an inverse.
  @discardableResult
  static func relate(
    _ source: NSEntityDescription,
    _ name: String,
    toMany: Bool,
    ordered: Bool = false,
    rule: NSDeleteRule = .nullifyDeleteRule,
    _ destination: NSEntityDescription,
    _ inverseName: String? = nil,
    toMany inverseToMany: Bool = false,
    inverseOrdered: Bool = false
  ) -> NSRelationshipDescription {
    let relationship = NSRelationshipDescription()
    relationship.name = name
    relationship.destinationEntity = destination
    relationship.maxCount = toMany ? 0 : 1
    relationship.isOrdered = ordered
    relationship.deleteRule = rule
    source.properties += [relationship]
    if inverseName == name, source === destination {
      relationship.inverseRelationship = relationship
    } else if let inverseName {
      let inverse = NSRelationshipDescription()
      inverse.name = inverseName
      inverse.destinationEntity = source
      inverse.maxCount = inverseToMany ? 0 : 1
      inverse.isOrdered = inverseOrdered
      destination.properties += [inverse]
      relationship.inverseRelationship = inverse
      inverse.inverseRelationship = relationship
    }
    return relationship
  }
}
