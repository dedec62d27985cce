/// The names that the properties of a migrated entity had in the source's entity.
///
/// A mapping model says it where it takes a value from one property, `$source.name`. Else the renaming
/// identifiers do, and else the names are equal.
struct FormerNames {
  private let mapping: NSEntityMapping?
  private let former: NSEntityDescription
  private let current: NSEntityDescription

  init(_ mapping: NSMappingModel, from former: EntityTable, to current: EntityTable) {
    self.mapping = mapping.entityMappings.first {
      $0.sourceEntityName == former.name && $0.destinationEntityName == current.name
    }
    self.former = former.layout.entity
    self.current = current.layout.entity
  }

  /// The former name of a property, or of a leaf of a composite attribute; nil for a new one.
  func name(of present: String) -> String? {
    let path = present.split(separator: ".", maxSplits: 1).map(String.init)
    guard let property = path.first, let name = formerName(ofProperty: property) else { return nil }
    return ([name] + path.dropFirst()).joined(separator: ".")
  }

  private func formerName(ofProperty name: String) -> String? {
    let known = former.propertiesByName
    let identifier = current.propertiesByName[name]?.renamingIdentifier ?? name
    let renamed = known.values.filter { $0.renamingIdentifier == identifier }.map(\.name).min()
    return [mapped(name), identifier, renamed, name].compactMap { $0 }.first { known[$0] != nil }
  }

  /// The source's property that a mapping takes the value of a property from.
  private func mapped(_ name: String) -> String? {
    let properties = (mapping?.attributeMappings ?? []) + (mapping?.relationshipMappings ?? [])
    return properties.first { $0.name == name }?.valueExpression.flatMap { $0.tree.sourceProperty }
  }
}

extension ExpressionTree {
  /// The property in `$source.name`, and in a call that finds the migrated objects of a relationship.
  fileprivate var sourceProperty: String? {
    switch self {
    case .keyPath(.variable(NSMigrationSourceObjectKey), let keys) where keys.count == 1: keys[0]
    case .call(_, MigrationSelector.destinations, let arguments),
      .call(_, MigrationSelector.destinationsForRelationship, let arguments):
      arguments.lazy.compactMap(\.sourceProperty).first
    default: nil
    }
  }
}
