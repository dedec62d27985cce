import Foundation

// Descriptions are equal if their contents are, as in Core Data: a copy equals its original in any
// model. Related descriptions are compared by name, since comparing two that reference each other
// would not terminate.

/// The parts of a description by name.
typealias DescriptionParts = [String: AnyHashable]

extension NSPropertyDescription {
  final func describesTheSame(as object: Any?) -> Bool {
    guard let other = object as? NSPropertyDescription else { return false }
    if other === self { return true }
    return type(of: other) == type(of: self) && other.name == name && other.parts == parts
  }
}

extension NSEntityDescription {
  final func describesTheSame(as object: Any?) -> Bool {
    guard let other = object as? NSEntityDescription else { return false }
    if other === self { return true }
    return type(of: other) == type(of: self) && other.name == name && other.parts == parts
  }

  private var parts: DescriptionParts {
    [
      "class": objectClassName,
      "abstract": isAbstract,
      "userInfo": NSDictionary(dictionary: userInfo ?? [:]),
      "modifier": versionHashModifier,
      "renaming": renamingIdentifier,
      "super": superentity?.name,
      "subentities": Set(subentities.map(\.name)),
      "constraints": Set(uniquenessConstraintNames),
      "properties": Set(ownProperties),
      "indexes": Set(indexes),
    ]
  }
}

extension NSManagedObjectModel {
  final func describesTheSame(as object: Any?) -> Bool {
    guard let other = object as? NSManagedObjectModel else { return false }
    if other === self { return true }
    return other.versionIdentifiers == versionIdentifiers
      && other.entitiesByName == entitiesByName
      && other.configurationNames == configurationNames
      && other.fetchRequestTemplatesByName.mapValues(\.template)
        == fetchRequestTemplatesByName.mapValues(\.template)
  }

  private var configurationNames: [String: Set<String>] {
    configurationEntityNames.mapValues(Set.init)
  }
}

extension NSFetchIndexDescription {
  final func describesTheSame(as object: Any?) -> Bool {
    guard let other = object as? NSFetchIndexDescription else { return false }
    return other === self
      || other.name == name && other.elements == elements
        && other.partialPredicateSource?.format == partialPredicateSource?.format
  }
}

extension NSFetchIndexElementDescription {
  final func describesTheSame(as object: Any?) -> Bool {
    guard let other = object as? NSFetchIndexElementDescription else { return false }
    return other === self
      || other.propertyName == propertyName && other.collationType == collationType
        && other.isAscending == isAscending
  }
}
