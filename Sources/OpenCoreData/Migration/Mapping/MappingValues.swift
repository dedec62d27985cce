import Effects
import Foundation

/// Evaluates the value expressions of one entity mapping.
struct MappingValues {
  let policy: NSEntityMigrationPolicy
  let mapping: NSEntityMapping
  let manager: NSMigrationManager

  func setAttributes(of destination: NSManagedObject, from source: NSManagedObject) throws {
    guard let mappings = mapping.attributeMappings else {
      // A copying mapping without attribute mappings copies the attributes of the same name.
      return copyAttributes(from: source, to: destination)
    }
    for property in mappings {
      guard let name = property.name, let expression = property.valueExpression else { continue }
      guard let attribute = destination.entity.attributesByName[name],
        !(attribute is NSDerivedAttributeDescription), applies(property, source)
      else { continue }
      if case .keyPath(.variable(NSMigrationSourceObjectKey), let path) = expression.tree,
        path.count == 1, copyUnreadable(path[0], of: source, to: name, of: destination)
      {
        continue
      }
      let value = try value(of: expression, property, source: source, destination: destination)
      let flat = flattened(value)
      if let composite = attribute as? NSCompositeAttributeDescription {
        let present = destination.value(forKey: name)
        destination.setValue(Self.fitted(flat, to: composite, present), forKey: name)
      } else {
        try requireFit(flat, attribute)
        destination.setValue(flat, forKey: name)
      }
    }
  }

  /// An inferred mapping keeps numbers exactly; assigning one would truncate it to the type's
  /// width.
  private func requireFit(_ value: Any?, _ attribute: NSAttributeDescription) throws {
    guard mapping.isInferred, NumberConversion.isNumber(attribute.attributeType),
      let number = value as? NSNumber, !NumberConversion.fits(number, attribute.attributeType)
    else { return }
    throw NumberConversion.refusal(
      number.stringValue,
      attribute.name,
      mapping.destinationEntityName ?? ""
    )
  }

  /// The value of a composite attribute, each element from the one with its former name.
  ///
  /// Removed elements are left out, new ones keep their default.
  private static func fitted(
    _ value: Any?,
    to composite: NSCompositeAttributeDescription,
    _ present: Any?
  ) -> Any? {
    guard let former = value as? [String: Any] else { return value }
    var result = present as? [String: Any] ?? [:]
    for element in composite.elements {
      let key = [element.renamingIdentifier, element.name].first { former[$0 ?? ""] != nil }
      guard let key, let name = key, let value = former[name] else { continue }
      let inner = element as? NSCompositeAttributeDescription
      result[element.name] =
        inner.map { fitted(value, to: $0, result[element.name]) } ?? value
    }
    return result
  }

  /// A generated mapping of a property needs a property of the same name in the source.
  private func applies(_ property: NSPropertyMapping, _ source: NSManagedObject?) -> Bool {
    guard property.isGenerated, let name = property.name else { return true }
    return source?.entity.propertiesByName[name] != nil
  }

  private func copyAttributes(from source: NSManagedObject, to destination: NSManagedObject) {
    guard mapping.mappingType == .copyEntityMappingType else { return }
    for (name, attribute) in destination.entity.attributesByName
    where !(attribute is NSDerivedAttributeDescription) {
      guard let former = source.entity.attributesByName[name], !former.isTransient,
        !copyUnreadable(name, of: source, to: name, of: destination)
      else { continue }
      destination.setValue(source.value(forKey: name), forKey: name)
    }
  }

  /// Copies the bytes of a transformable value that this process cannot decode, where the attributes
  /// encode their values alike; returns whether it did.
  ///
  /// Where they do not, reading the value fails the migration.
  private func copyUnreadable(
    _ former: String,
    of source: NSManagedObject,
    to name: String,
    of destination: NSManagedObject
  ) -> Bool {
    let (from, to) = (source.template.layout, destination.template.layout)
    let stores = destination.context?.persistentStoreCoordinator?.persistentStores ?? []
    // An app's own store is passed values, not bytes.
    guard stores.allSatisfy({ !($0 is any CustomStore) || $0 is BinaryStore }),
      case .attribute(let old) = from.slot(named: former),
      case .attribute(let new) = to.slot(named: name), !to.attributes[new].isTransient,
      from.attributes[old].type == to.attributes[new].type,
      from.attributes[old].transformerName == to.attributes[new].transformerName,
      let bytes = source.unreadableBytes(at: old)
    else { return false }
    destination.setStoredBytes(bytes, at: new)
    return true
  }

  func setRelationships(of destination: NSManagedObject, from source: NSManagedObject?) throws {
    for property in mapping.relationshipMappings ?? [] {
      guard let name = property.name, let expression = property.valueExpression,
        let relationship = destination.entity.relationshipsByName[name],
        applies(property, source)
      else { continue }
      let value = try value(of: expression, property, source: source, destination: destination)
      let objects = try fitting(Self.objects(in: value), relationship, expression)
      if !relationship.isToMany {
        destination.setValue(objects.first, forKey: name)
      } else if relationship.isOrdered {
        destination.setValue(NSOrderedSet(array: objects), forKey: name)
      } else {
        destination.setValue(NSSet(array: objects), forKey: name)
      }
    }
  }

  /// The objects to which a relationship can refer.
  ///
  /// The objects that the source's relationship became are those of all mappings: a person may have
  /// become a person and a badge. Any other expression says itself which objects it means.
  private func fitting(
    _ objects: [NSManagedObject],
    _ relationship: NSRelationshipDescription,
    _ expression: NSExpression
  ) throws -> [NSManagedObject] {
    guard let entity = relationship.destinationEntity else { return objects }
    let fitting = objects.filter { $0.entity.isKindOf(entity: entity) }
    guard fitting.count < objects.count else { return objects }
    if case .call(_, MigrationSelector.destinationsForRelationship, _) = expression.tree {
      return fitting
    }
    let others = Set(objects.compactMap(\.entity.name)).subtracting(
      fitting.compactMap(\.entity.name)
    )
    throw MigrationError.make(
      NSEntityMigrationPolicyError,
      [
        "reason": "The mapping '\(mapping.name ?? "")' gives the relationship "
          + "'\(relationship.name)' objects of \(others.sorted().joined(separator: ", ")); its "
          + "destination is \(entity.name ?? "").",
        "entityMapping": mapping.name ?? "",
      ]
    )
  }

  private func value(
    of expression: NSExpression,
    _ property: NSPropertyMapping,
    source: NSManagedObject?,
    destination: NSManagedObject
  ) throws -> Any? {
    var variables: [String: Any?] = [
      NSMigrationManagerKey: manager,
      NSMigrationDestinationObjectKey: destination,
      NSMigrationEntityMappingKey: mapping,
      NSMigrationPropertyMappingKey: property,
      NSMigrationEntityPolicyKey: policy,
    ]
    variables[NSMigrationSourceObjectKey] = .some(source)
    return try Self.value(of: expression, variables, manager)
  }

  /// Evaluates a value expression; an expression of a subclass evaluates itself.
  static func value(
    of expression: NSExpression,
    _ variables: [String: Any?],
    _ manager: NSMigrationManager
  ) throws -> Any? {
    guard type(of: expression) == NSExpression.self else {
      let context = NSMutableDictionary()
      for (name, value) in variables { context[name] = value ?? NSNull() }
      return expression.expressionValue(with: nil, context: context)
    }
    return try expression.value(
      with: nil,
      variables: variables,
      clock: manager.effects.clock
    )
  }

  /// The objects in an expression's result: one, or a collection of any kind.
  static func objects(in value: Any?) -> [NSManagedObject] {
    switch flattened(value) {
    case let object as NSManagedObject: [object]
    case let objects as [NSManagedObject]: objects
    case let objects as NSOrderedSet: objects.array.compactMap { $0 as? NSManagedObject }
    case let objects as NSSet: objects.allObjects.compactMap { $0 as? NSManagedObject }
    case let objects as Set<NSManagedObject>: Array(objects)
    case let objects as [Any]: objects.compactMap { $0 as? NSManagedObject }
    default: []
    }
  }
}
