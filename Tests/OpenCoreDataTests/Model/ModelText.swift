import Foundation
import OpenCoreData

/// A complete model as text, so that a comparison shows the differences.
enum ModelText {
  static func describe(_ model: NSManagedObjectModel) -> String {
    var lines: [String] = []
    for entity in model.entities.sorted(by: { ($0.name ?? "") < ($1.name ?? "") }) {
      lines.append(describe(entity))
      let own = entity.ownProperties.sorted { $0.name < $1.name }
      lines += own.map { "  " + describe($0) }
      for index in entity.indexes {
        let elements = index.elements.map {
          "\($0.propertyName ?? "") \($0.collationType) \($0.isAscending)"
        }
        lines.append("  index \(index.name) \(elements)")
      }
    }
    for name in model.configurations {
      let members = model.entities(forConfigurationName: name) ?? []
      lines.append("configuration \(name) \(members.compactMap(\.name).sorted())")
    }
    for (name, template) in model.requestTemplates.sorted(by: { $0.key < $1.key }) {
      lines.append("template \(name) \(template)")
    }
    lines.append("versions \(model.versionIdentifiers.map { "\($0)" }.sorted())")
    return lines.joined(separator: "\n")
  }

  private static func describe(_ entity: NSEntityDescription) -> String {
    """
    \(entity.name ?? "") class \(entity.rawClassName ?? "-") abstract \(entity.isAbstract) \
    parent \(entity.superentity?.name ?? "-") renaming \(entity.renamingIdentifier ?? "") \
    modifier \(entity.versionHashModifier ?? "-") unique \(entity.uniquenessConstraintNames) \
    compound \(entity.compoundIndexNames) info \(describe(entity.userInfo))
    """
  }

  private static func describe(_ property: NSPropertyDescription) -> String {
    var text = """
      \(property.name) optional \(property.isOptional) transient \(property.isTransient) \
      indexed \(property.isIndexed) renaming \(property.renamingIdentifier ?? "") \
      modifier \(property.versionHashModifier ?? "-") info \(describe(property.userInfo)) \
      rules \(property.allValidationRules.map { "\($0.format) \($0.warning)" })
      """
    if let attribute = property as? NSAttributeDescription {
      text += """
         type \(attribute.attributeType) default \(attribute.defaultValue.map { "\($0)" } ?? "-") \
        transformer \(attribute.valueTransformerName ?? "-") \
        class \(attribute.attributeValueClassName ?? "-") \
        external \(attribute.allowsExternalBinaryDataStorage) \
        history \(attribute.preservesValueInHistoryOnDeletion) limits \(attribute.limits)
        """
    }
    if let derived = property as? NSDerivedAttributeDescription {
      text += " derived \(derived.derivationFormat ?? "-")"
    }
    if let composite = property as? NSCompositeAttributeDescription {
      text += " elements \(composite.elements.map { describe($0) })"
    }
    if let relationship = property as? NSRelationshipDescription {
      text += """
         to \(relationship.destinationEntity?.name ?? "-") \
        inverse \(relationship.inverseRelationship?.declaringEntity?.name ?? "-").\
        \(relationship.inverseRelationship?.name ?? "-") \
        count \(relationship.minCount)...\(relationship.maxCount) \
        rule \(relationship.deleteRule) ordered \(relationship.isOrdered)
        """
    }
    if let fetched = property as? NSFetchedPropertyDescription {
      text += " fetch \(fetched.requestTemplate.map { "\($0)" } ?? "-")"
    }
    return text
  }

  private static func describe(_ info: [AnyHashable: Any]?) -> String {
    (info ?? [:]).map { "\($0.key)=\($0.value)" }.sorted().joined(separator: ",")
  }
}
