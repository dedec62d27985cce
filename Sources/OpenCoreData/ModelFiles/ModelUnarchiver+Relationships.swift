import Foundation

/// Reads relationships, which are linked after all entities.
extension ModelUnarchiver {
  mutating func relationship(
    _ object: ArchivedObject
  ) throws -> NSRelationshipDescription {
    let relationship = NSRelationshipDescription()
    // Models created in code have -1 for "no bound", which is part of the hash.
    relationship.maxCount = object.integer("NSMaxCount") ?? 0
    relationship.minCount = object.integer("NSMinCount") ?? 0
    relationship.isOrdered = object.boolean("NSIsOrdered")
    let rule = object.integer("NSDeleteRule") ?? 1
    guard let deleteRule = UInt(exactly: rule).flatMap(NSDeleteRule.init(rawValue:)) else {
      throw error("a relationship has the delete rule \(rule)", expected: "0, 1, 2 or 3")
    }
    relationship.deleteRule = deleteRule
    relationships.append((object, relationship))
    return relationship
  }

  func linkRelationships() throws {
    for (object, relationship) in relationships {
      let name = object.string("_NSDestinationEntityName")
      let path = "\(relationship.declaringEntity?.name ?? "").\(relationship.name)"
      guard
        let destination = object.object("NSDestinationEntity").flatMap({ entities[$0.index] })
          ?? name.flatMap({ byName[$0] })
      else {
        throw error(
          "the destination entity '\(name ?? "")' of '\(path)' does not exist",
          expected: "an entity of this model",
          reason: .inconsistent
        )
      }
      relationship.destinationEntity = destination
    }
    for (object, relationship) in relationships {
      relationship.inverseRelationship = try inverse(of: relationship, object)
    }
  }

  func inverse(
    of relationship: NSRelationshipDescription,
    _ object: ArchivedObject
  ) throws -> NSRelationshipDescription? {
    let name = object.string("_NSInverseRelationshipName")
    guard var target = object.object("NSInverseRelationship") else {
      guard let name, !name.isEmpty else { return nil }
      return try checkedInverse(
        relationship.destinationEntity?.relationshipsByName[name],
        of: relationship,
        name: name
      )
    }
    if target.className == "_NSPropertyDescriptionProxy",
      let underlying = target.object("NSUnderlyingProperty")
    {
      target = underlying
    }
    let owner = owners[target.index]
    return try checkedInverse(
      owner.flatMap { $0.entity.relationshipsByName[$0.name] }
        ?? name.flatMap { relationship.destinationEntity?.relationshipsByName[$0] },
      of: relationship,
      name: name ?? owner?.name ?? ""
    )
  }

  func checkedInverse(
    _ inverse: NSRelationshipDescription?,
    of relationship: NSRelationshipDescription,
    name: String
  ) throws -> NSRelationshipDescription {
    let path = "\(relationship.declaringEntity?.name ?? "").\(relationship.name)"
    let owner = "\(relationship.destinationEntity?.name ?? "").\(name)"
    guard let inverse else {
      throw error(
        "the inverse '\(owner)' of '\(path)' does not exist",
        expected: "a relationship of the destination",
        reason: .inconsistent
      )
    }
    guard let back = inverse.destinationEntity, let source = relationship.declaringEntity,
      source.isKindOf(entity: back) || back.isKindOf(entity: source)
    else {
      throw error(
        "the inverse '\(owner)' of '\(path)' leads to '\(inverse.destinationEntity?.name ?? "")'",
        expected: "a relationship that leads back",
        reason: .inconsistent
      )
    }
    return inverse
  }
}
