import Foundation

/// Maps each entity and each property of a destination model to the one of the source model that it
/// was.
///
/// Names are compared by their renaming identifiers, so a chain of renames whose versions all carry
/// the first name is followed over any number of versions. Unsupported differences are refused when
/// this value is created, before anything is changed.
struct ModelDifference: @unchecked Sendable {
  // Sendable: immutable, and made only of descriptions that are not changed during a migration.

  let sources: [NSEntityDescription]
  let destinations: [NSEntityDescription]

  private let sourceOf: [ObjectIdentifier: NSEntityDescription]
  private let destinationOf: [ObjectIdentifier: NSEntityDescription]
  private let properties: [ObjectIdentifier: [String: PropertyPair]]

  private struct PropertyPair {
    let before: NSPropertyDescription
    let after: NSPropertyDescription
  }

  /// Throws `NSInferredMappingModelError` if no mapping can be inferred between the models.
  init(from sources: [NSEntityDescription], to destinations: [NSEntityDescription]) throws {
    self.sources = Self.withAncestors(sources)
    self.destinations = Self.withAncestors(destinations)
    var sourceOf: [ObjectIdentifier: NSEntityDescription] = [:]
    var destinationOf: [ObjectIdentifier: NSEntityDescription] = [:]
    var properties: [ObjectIdentifier: [String: PropertyPair]] = [:]
    let pairs = Self.pairs(
      self.sources.map { Named($0, name: $0.name ?? "", former: $0.explicitRenamingIdentifier) },
      self.destinations.map {
        Named($0, name: $0.name ?? "", former: $0.explicitRenamingIdentifier)
      }
    )
    for (source, destination) in pairs {
      sourceOf[ObjectIdentifier(destination)] = source
      destinationOf[ObjectIdentifier(source)] = destination
      properties[ObjectIdentifier(destination)] = Self.properties(source, destination)
    }
    self.sourceOf = sourceOf
    self.destinationOf = destinationOf
    self.properties = properties
    try requireTypes()
    try requireHierarchies()
  }

  /// The entity in the source; nil for a new one.
  func source(of destination: NSEntityDescription) -> NSEntityDescription? {
    sourceOf[ObjectIdentifier(destination)]
  }

  /// The entity in the destination; nil for a removed one.
  func destination(of source: NSEntityDescription) -> NSEntityDescription? {
    destinationOf[ObjectIdentifier(source)]
  }

  /// The source of a property of the entity, own or inherited; nil for a new one.
  ///
  /// A leaf of a composite attribute is identified by its path, `address.city`.
  func source(
    ofPropertyNamed name: String,
    in destination: NSEntityDescription
  ) -> NSPropertyDescription? {
    properties[ObjectIdentifier(destination)]?[name]?.before
  }

  /// The former name of each property and each leaf of the entity, by its present one.
  func formerNames(in destination: NSEntityDescription) -> [String: String] {
    properties[ObjectIdentifier(destination)]?.mapValues(\.before.name) ?? [:]
  }

  /// The relationships of the source that became this one; several if it has moved up to a common
  /// parent.
  func sources(of relationship: NSRelationshipDescription) -> [NSRelationshipDescription] {
    guard let declaring = relationship.declaringEntity else { return [] }
    var result: [NSRelationshipDescription] = []
    for entity in declaring.selfAndDescendants {
      let found = source(ofPropertyNamed: relationship.name, in: entity)
      guard let found = found as? NSRelationshipDescription, !found.isTransient,
        !result.contains(where: { $0 === found })
      else { continue }
      result.append(found)
    }
    return result
  }

  /// Whether an entity was removed, added, or has another parent than before.
  var changesHierarchies: Bool {
    sources.contains { destination(of: $0) == nil }
      || destinations.contains { entity in
        guard let source = source(of: entity) else { return entity.superentity != nil }
        return source.superentity.flatMap(destination(of:)) !== entity.superentity
      }
  }

  // MARK: Matching

  private struct Named<Description: AnyObject> {
    let description: Description
    let name: String
    let former: String?

    init(_ description: Description, name: String, former: String?) {
      self.description = description
      self.name = name
      self.former = former
    }

    var canonical: String { former ?? name }
  }

  /// Pairs the descriptions that share a renaming identifier.
  ///
  /// A renaming identifier may also be the name in the previous version, instead of the first.
  private static func pairs<Description>(
    _ sources: [Named<Description>],
    _ destinations: [Named<Description>]
  ) -> [(Description, Description)] {
    var taken: Set<ObjectIdentifier> = []
    var paired: [ObjectIdentifier: Description] = [:]
    func pair(
      _ candidates: [Named<Description>],
      _ matches: (Named<Description>, Named<Description>) -> Bool
    ) {
      for destination in candidates
      where paired[ObjectIdentifier(destination.description)] == nil {
        let found = sources.first {
          !taken.contains(ObjectIdentifier($0.description)) && matches($0, destination)
        }
        guard let found else { continue }
        taken.insert(ObjectIdentifier(found.description))
        paired[ObjectIdentifier(destination.description)] = found.description
      }
    }
    // An explicit renaming identifier takes precedence over an equal name.
    let renamed = destinations.filter { $0.former != nil && $0.former != $0.name }
    pair(renamed) { $0.canonical == $1.canonical }
    pair(renamed) { $0.name == $1.former }
    pair(destinations) { $0.canonical == $1.canonical }
    pair(destinations) { $0.name == $1.name }
    return destinations.compactMap { destination in
      paired[ObjectIdentifier(destination.description)].map { ($0, destination.description) }
    }
  }

  private static func properties(
    _ source: NSEntityDescription,
    _ destination: NSEntityDescription
  ) -> [String: PropertyPair] {
    func named(_ entity: NSEntityDescription) -> [Named<NSPropertyDescription>] {
      entity.propertiesByName.values
        .filter { !($0 is NSFetchedPropertyDescription) && !($0 is NSExpressionDescription) }
        .sorted { VersionHash.precedes($0.name, $1.name) }
        .map { Named($0, name: $0.name, former: $0.explicitRenamingIdentifier) }
    }
    var result: [String: PropertyPair] = [:]
    for (before, after) in pairs(named(source), named(destination)) {
      // A property of another kind is a new one with an old name.
      let isSameKind =
        (before is NSAttributeDescription) == (after is NSAttributeDescription)
      guard isSameKind else { continue }
      result[after.name] = PropertyPair(before: before, after: after)
      if let before = before as? NSCompositeAttributeDescription,
        let after = after as? NSCompositeAttributeDescription
      {
        for leaf in leaves(before, after) { result[leaf.after.name] = leaf }
      }
    }
    return result
  }

  /// The elements that two composite attributes share, named by their paths.
  private static func leaves(
    _ source: NSCompositeAttributeDescription,
    _ destination: NSCompositeAttributeDescription
  ) -> [PropertyPair] {
    func named(_ composite: NSCompositeAttributeDescription) -> [Named<NSAttributeDescription>] {
      composite.elements.map { Named($0, name: $0.name, former: $0.explicitRenamingIdentifier) }
    }
    return pairs(named(source), named(destination)).flatMap { before, after -> [PropertyPair] in
      guard let before = source.placed(before), let after = destination.placed(after) else {
        return []
      }
      let pair = PropertyPair(before: before, after: after)
      guard let before = before as? NSCompositeAttributeDescription,
        let after = after as? NSCompositeAttributeDescription
      else { return [pair] }
      return [pair] + leaves(before, after)
    }
  }

  private static func withAncestors(_ entities: [NSEntityDescription]) -> [NSEntityDescription] {
    var seen: Set<ObjectIdentifier> = []
    return entities.flatMap { [$0] + $0.ancestors }
      .filter { seen.insert(ObjectIdentifier($0)).inserted }
      .sorted(by: EntityNumbering.precedes)
  }

  // MARK: Unsupported differences

  private func requireTypes() throws {
    for entity in destinations {
      let pairs = properties[ObjectIdentifier(entity)] ?? [:]
      for (name, pair) in pairs.sorted(by: { VersionHash.precedes($0.key, $1.key) }) {
        let (before, after) = (pair.before, pair.after)
        guard !after.isTransient, !before.isTransient else { continue }
        if let after = after as? NSAttributeDescription,
          let before = before as? NSAttributeDescription,
          after.attributeType != before.attributeType,
          !NumberConversion.isPossible(from: before.attributeType, to: after.attributeType)
        {
          throw refusal(
            "Source and destination attribute types are incompatible",
            entity: entity,
            property: name
          )
        }
        if let after = after as? NSRelationshipDescription,
          let before = before as? NSRelationshipDescription, before.isToMany, !after.isToMany
        {
          throw refusal(
            "Source and destination relationship cardinalities are incompatible",
            entity: entity,
            property: name
          )
        }
      }
    }
  }

  /// Throws if two hierarchies become one, because their rows are numbered separately.
  private func requireHierarchies() throws {
    for root in destinations where root.superentity == nil {
      var origin: NSEntityDescription?
      for entity in root.selfAndDescendants {
        guard let source = source(of: entity) else { continue }
        let found = source.ancestors.last ?? source
        guard let known = origin, known !== found else {
          origin = found
          continue
        }
        throw refusal(
          "Entities \(known.name ?? "") and \(found.name ?? "") have no common parent in the "
            + "source model and cannot share one in the destination model",
          entity: entity,
          property: nil
        )
      }
    }
  }

  private func refusal(
    _ reason: String,
    entity: NSEntityDescription,
    property: String?
  ) -> NSError {
    var userInfo: [String: Any] = ["reason": reason, "entity": entity.name ?? ""]
    userInfo["property"] = property
    return MigrationError.make(NSInferredMappingModelError, userInfo)
  }
}
