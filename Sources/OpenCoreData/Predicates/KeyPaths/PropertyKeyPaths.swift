import Foundation
import Synchronization

/// Finds the properties that Swift key paths read, for predicates and sort descriptors.
///
/// ``KeyPathNames`` finds the names that a key path looks up. The key path's value may still
/// differ: an app's computed property may read a title and return it in capitals, and a predicate
/// on it is not a predicate on the title. A value is therefore set on a scratch object, and has to
/// be returned unchanged by the key path.
enum PropertyKeyPaths {
  private struct Known: @unchecked Sendable {
    // Unchecked: key paths are immutable; they are only compared.
    var keys: [AnyKeyPath: [String]] = [:]
  }

  private static let known = Mutex(Known())

  /// The keys of the path; empty for the object itself, nil if they are unknown.
  static func keys(of keyPath: AnyKeyPath) -> [String]? {
    if let keys = known.withLock({ $0.keys[keyPath] }) { return keys }
    guard let type = type(of: keyPath).rootType as? NSManagedObject.Type else { return nil }
    guard let entity = ManagedObjectModels.entity(of: type) else {
      // The base class of several entities' classes, or a model that is not in use yet. Only
      // modeled properties have generated names, which need no probe.
      return KeyPathNames.generatedName(of: keyPath).map { [$0] }
        ?? KeyPathNames.generatedPath(of: keyPath)
    }
    guard let keys = found(keyPath, from: entity) else { return nil }
    known.withLock { $0.keys[keyPath] = keys }
    return keys
  }

  private static func found(_ keyPath: AnyKeyPath, from entity: NSEntityDescription) -> [String]? {
    guard let name = KeyPathNames.name(of: keyPath) else {
      let object = NSManagedObject.scratch(entity)
      let value = flattened(object[keyPath: keyPath])
      if value as? NSManagedObject === object { return [] }
      return value as? NSManagedObjectID === object.objectID ? ["objectID"] : nil
    }
    let keys = name.split(separator: ".").map(String.init)
    let root = NSManagedObject.scratch(entity)
    var owner = root
    for key in keys.dropLast() {
      guard let destination = owner.entity.relationshipsByName[key]?.destinationEntity else {
        return nil
      }
      let next = NSManagedObject.scratch(destination)
      owner.setPrimitiveValue(next, forKey: key)
      owner = next
    }
    guard let key = keys.last, let property = owner.entity.propertiesByName[key] else { return nil }
    for probe in probes(of: property) {
      owner.setPrimitiveValue(probe, forKey: key)
      guard shows(flattened(root[keyPath: keyPath]), probe) else { return nil }
    }
    return keys
  }

  /// Values of the property's type that are unlikely to be equal to another value.
  ///
  /// Empty for types without such values: then only the name is checked.
  private static func probes(of property: NSPropertyDescription) -> [Any] {
    switch property {
    case let relationship as NSRelationshipDescription:
      guard let destination = relationship.destinationEntity else { return [] }
      let target = NSManagedObject.scratch(destination)
      if !relationship.isToMany { return [target] }
      return [relationship.isOrdered ? NSOrderedSet(object: target) : NSSet(object: target)]
    case let attribute as NSAttributeDescription:
      return probes(of: attribute.attributeType)
    default: return []
    }
  }

  private static func probes(of type: NSAttributeType) -> [Any] {
    switch type {
    case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType:
      [NSNumber(value: 11), NSNumber(value: 13)]
    case .booleanAttributeType: [NSNumber(value: true), NSNumber(value: false)]
    case .doubleAttributeType, .floatAttributeType: [NSNumber(value: 11.5), NSNumber(value: 13.25)]
    case .decimalAttributeType: [NSDecimalNumber(value: 11.5), NSDecimalNumber(value: 13.25)]
    case .stringAttributeType: ["Probe one", "probe Two"]
    case .dateAttributeType: [Date(timeIntervalSinceReferenceDate: 11.5)]
    case .binaryDataAttributeType: [Data([1, 2, 3])]
    case .URIAttributeType: URL(string: "probe:one").map { [$0] } ?? []
    default: []
    }
  }

  private static func shows(_ value: Any?, _ probe: Any) -> Bool {
    guard let value else { return false }
    if let probe = probe as? NSManagedObject { return value as? NSManagedObject === probe }
    if let members = ExpressionValue.members(of: probe) {
      guard let found = ExpressionValue.members(of: value), found.count == 1 else { return false }
      return found[0] as? NSManagedObject === members[0] as? NSManagedObject
    }
    let found = ExpressionValue(value)
    // An app's own enumeration stands for its raw value, which can't be read here.
    if case .opaque = found { return true }
    return found.isEqual(to: ExpressionValue(probe))
  }
}
