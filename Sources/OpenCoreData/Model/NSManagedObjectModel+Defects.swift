import Foundation

extension NSManagedObjectModel {
  /// The first error of the model, in a sentence that names the property; nil for a valid model.
  ///
  /// Model files are validated when they are read. This validates models created in code.
  package var defect: String? {
    guard !isFrozen else { return nil }
    var names: Set<String> = []
    for entity in entities {
      guard let name = entity.name, !name.isEmpty else { return "An entity has no name." }
      guard names.insert(name).inserted else {
        return "Two entities of the model are named '\(name)'."
      }
      for property in entity.ownProperties {
        if property.name.isEmpty { return "A property of the entity '\(name)' has no name." }
        guard let relationship = property as? NSRelationshipDescription else { continue }
        if let defect = Self.defect(of: relationship, in: entity) { return defect }
      }
    }
    return nil
  }

  private static func defect(
    of relationship: NSRelationshipDescription,
    in entity: NSEntityDescription
  ) -> String? {
    let path = "\(entity.name ?? "").\(relationship.name)"
    guard let destination = relationship.destinationEntity else {
      return "The relationship '\(path)' has no destination entity."
    }
    guard let inverse = relationship.inverseRelationship else { return nil }
    let inversePath = "\(inverse.declaringEntity?.name ?? "").\(inverse.name)"
    guard let owner = inverse.declaringEntity else {
      return "The inverse '\(inverse.name)' of '\(path)' belongs to no entity."
    }
    guard owner.isRelated(to: destination) else {
      return "The inverse '\(inversePath)' of '\(path)' does not belong to the relationship's "
        + "destination, '\(destination.name ?? "")'."
    }
    guard let back = inverse.destinationEntity else {
      return "The relationship '\(inversePath)' has no destination entity."
    }
    guard back.isRelated(to: entity) else {
      if destination.modelReference !== entity.modelReference {
        return
          "The relationship '\(path)' leads to '\(destination.name ?? "")' of another model. Add that entity, "
          + "or a copy of it, to the model's entities."
      }
      return "The inverse '\(inversePath)' of '\(path)' leads to '\(back.name ?? "")'."
    }
    return nil
  }
}
