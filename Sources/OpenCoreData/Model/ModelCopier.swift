import Foundation

/// Copies entities from models into a new one and points every link at the copies.
enum ModelCopier {
  static func copy(_ model: NSManagedObjectModel, into target: NSManagedObjectModel) {
    fill(target, with: model.entities)
    copyAttachments(of: model, into: target)
  }

  /// Copies entities, which must have distinct names, and relinks them by name.
  static func fill(_ target: NSManagedObjectModel, with entities: [NSEntityDescription]) {
    var copies: [String: NSEntityDescription] = [:]
    var pairs: [(original: NSEntityDescription, copy: NSEntityDescription)] = []
    for original in entities {
      guard let copy = original.copy() as? NSEntityDescription else { continue }
      pairs.append((original, copy))
      if let name = original.name { copies[name] = copy }
    }
    for (original, copy) in pairs {
      copy.subentities = original.subentities.compactMap { $0.name.flatMap { copies[$0] } }
    }
    for (original, copy) in pairs { relink(copy, like: original, copies: copies) }
    target.entities = pairs.map(\.copy)
  }

  /// Copies configurations, fetch request templates and identifiers.
  static func copyAttachments(
    of model: NSManagedObjectModel,
    into target: NSManagedObjectModel
  ) {
    let byName = target.entitiesByName
    for (configuration, names) in model.configurationEntityNames {
      let present = target.entities(forConfigurationName: configuration) ?? []
      let added = names.compactMap { byName[$0] }.filter { entity in
        !present.contains { $0 === entity }
      }
      target.setEntities(present + added, forConfigurationName: configuration)
    }
    target.versionIdentifiers.formUnion(model.versionIdentifiers)
    target.requestTemplates.merge(model.requestTemplates) { first, _ in first }
    target.requests.merge(model.requests) { first, _ in first }
    target.cloudKitConfigurations.formUnion(model.cloudKitConfigurations)
    target.isUsedWithCloudKit = target.isUsedWithCloudKit || model.isUsedWithCloudKit
    target.sourceURL = target.sourceURL ?? model.sourceURL
    if let dictionary = model.localizationDictionary {
      target.localizationDictionary = (target.localizationDictionary ?? [:])
        .merging(dictionary) { first, _ in first }
    }
  }

  private static func relink(
    _ copy: NSEntityDescription,
    like original: NSEntityDescription,
    copies: [String: NSEntityDescription]
  ) {
    for property in copy.ownProperties {
      guard let relationship = property as? NSRelationshipDescription,
        let source = original.ownProperties.first(where: { $0.name == property.name })
          as? NSRelationshipDescription
      else { continue }
      relationship.destinationEntity = source.destinationEntity?.name.flatMap { copies[$0] }
      if let inverse = source.inverseRelationship {
        let owner = inverse.declaringEntity?.name.flatMap { copies[$0] }
        relationship.inverseRelationship =
          owner?.ownProperties.first { $0.name == inverse.name } as? NSRelationshipDescription
      }
    }
    let properties = copy.propertiesByName
    for element in copy.indexes.flatMap(\.elements) {
      if let name = element.propertyName, let property = properties[name] {
        element.property = property
      }
    }
  }
}
