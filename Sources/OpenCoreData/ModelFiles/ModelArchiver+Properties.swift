import Foundation

/// Properties, with the predicates and expressions in them.
extension ModelArchiver {
  mutating func write(_ property: NSPropertyDescription, in entity: NSEntityDescription) {
    guard let place = propertyPlaces[place(property, in: entity)] else { return }
    var fields = commonFields(of: property)
    fields.append(("NSEntity", reference(entity)))
    switch property {
    case let attribute as NSAttributeDescription:
      let (names, own) = attributeFields(of: attribute)
      builder.fill(place, class: names, fields + own)
    case let relationship as NSRelationshipDescription:
      builder.fill(
        place,
        class: ["NSRelationshipDescription", "NSPropertyDescription", "NSObject"],
        fields + relationshipFields(of: relationship)
      )
    case let fetched as NSFetchedPropertyDescription:
      let target = fetched.requestTemplate.flatMap { template in
        entity.modelReference?.entitiesByName[template.entityName]
      }
      fields.append(
        (
          "NSFetchRequest",
          fetched.requestTemplate.map { request($0, entity: target) } ?? KeyedArchiveBuilder.null
        )
      )
      fields.append(
        ("_NSFetchRequestEntityName", builder.string(fetched.requestTemplate?.entityName))
      )
      builder.fill(
        place,
        class: ["NSFetchedPropertyDescription", "NSPropertyDescription", "NSObject"],
        fields
      )
    default:
      break
    }
  }

  mutating func commonFields(
    of property: NSPropertyDescription
  ) -> [(String, ArchiveValue)] {
    let isReadOnly =
      property is NSDerivedAttributeDescription || property is NSFetchedPropertyDescription
    let rules = property.allValidationRules
    let isOrdered = (property as? NSRelationshipDescription)?.isOrdered ?? false
    let hasUserInfo = property.userInfo?.isEmpty == false
    // The packed flags: the higher bits of the low byte mark absent parts.
    var flags: Int64 = 0x01
    if property.isOptional { flags |= 0x02 }
    if isReadOnly { flags |= 0x04 }
    if property.isTransient { flags |= 0x08 }
    if rules.isEmpty { flags |= 0x30 }
    if !hasUserInfo { flags |= 0x40 }
    if property.versionHashModifier == nil { flags |= 0x80 }
    if isOrdered { flags |= 0x400 }
    var fields: [(String, ArchiveValue)] = [
      ("_P", .integer(flags)),
      ("NSPropertyName", builder.string(property.name)),
      ("NSRenamingIdentifier", builder.string(property.renamingIdentifier)),
    ]
    if property.isOptional { fields.append(("NSIsOptional", .boolean(true))) }
    if property.isTransient { fields.append(("NSIsTransient", .boolean(true))) }
    if isReadOnly { fields.append(("NSIsReadOnly", .boolean(true))) }
    if property.isIndexed { fields.append(("NSIsIndexed", .boolean(true))) }
    if property.isIndexedBySpotlight { fields.append(("NSIndexedBySpotlight", .boolean(true))) }
    if let modifier = property.versionHashModifier {
      fields.append(("NSVersionHashModifier", builder.string(modifier)))
    }
    if hasUserInfo { fields.append(("NSUserInfo", userInfo(property.userInfo))) }
    if !rules.isEmpty { fields += validationFields(rules) }
    return fields
  }

  mutating func validationFields(_ rules: [ValidationRule]) -> [(String, ArchiveValue)] {
    var predicates: [ArchiveValue] = []
    var warnings: [ArchiveValue] = []
    var allWarnings: [ArchiveValue] = []
    for rule in rules {
      let warning: ArchiveValue =
        switch rule.warning {
        case .code(let code): builder.plain(.integer(Int64(code)))
        case .message(let text): builder.string(text)
        }
      allWarnings.append(warning)
      if let predicate = predicate(rule.format) {
        predicates.append(predicate)
        warnings.append(warning)
      }
    }
    return [
      ("NSValidationPredicates", builder.array(predicates)),
      ("NSValidationWarnings", builder.array(warnings)),
      (Key.rules, builder.array(rules.map { builder.string($0.format) })),
      (Key.warnings, builder.array(allWarnings)),
    ]
  }

  mutating func attributeFields(
    of attribute: NSAttributeDescription
  ) -> (names: [String], fields: [(String, ArchiveValue)]) {
    var flags: Int64 = 0
    if attribute.allowsExternalBinaryDataStorage { flags |= 4 }
    if attribute.preservesValueInHistoryOnDeletion { flags |= 16 }
    let null = KeyedArchiveBuilder.null
    var fields: [(String, ArchiveValue)] = [
      ("NSAttributeType", .integer(Int64(attribute.attributeType.rawValue))),
      ("NSAttributeValueClassName", builder.string(attribute.attributeValueClassName)),
      ("NSDefaultValue", builder.foundation(attribute.defaultValue) ?? null),
      ("NSValueTransformerName", builder.string(attribute.valueTransformerName)),
      ("NSFlagsKey", .integer(flags)),
    ]
    if attribute.allowsCloudEncryption {
      fields.append(("NSAllowsCloudEncryption", .boolean(true)))
    }
    let parents = ["NSAttributeDescription", "NSPropertyDescription", "NSObject"]
    if let derived = attribute as? NSDerivedAttributeDescription {
      let filter = derived.filteringSource?.format
      fields += [
        ("NSDerivationExpression", expression(derived.derivationFormat) ?? null),
        ("NSFilteringPredicate", predicate(filter) ?? null),
        (Key.derivation, builder.string(derived.derivationFormat)),
        (Key.filter, builder.string(filter)),
      ]
      return (["NSDerivedAttributeDescription"] + parents, fields)
    }
    if let composite = attribute as? NSCompositeAttributeDescription {
      fields.append(("NSElements", builder.array(composite.elements.map { element($0) })))
      return (["NSCompositeAttributeDescription"] + parents, fields)
    }
    return (parents, fields)
  }

  mutating func element(_ attribute: NSAttributeDescription) -> ArchiveValue {
    let common = commonFields(of: attribute)
    let (names, own) = attributeFields(of: attribute)
    return builder.object(class: names, common + own)
  }

  mutating func relationshipFields(
    of relationship: NSRelationshipDescription
  ) -> [(String, ArchiveValue)] {
    var inverse = KeyedArchiveBuilder.null
    if let target = relationship.inverseRelationship, let owner = target.declaringEntity,
      let place = propertyPlaces[place(target, in: owner)]
    {
      inverse = .reference(place)
    }
    var fields: [(String, ArchiveValue)] = [
      ("NSDestinationEntity", reference(relationship.destinationEntity)),
      ("_NSDestinationEntityName", builder.string(relationship.destinationEntity?.name)),
      ("NSInverseRelationship", inverse),
      ("_NSInverseRelationshipName", builder.string(relationship.inverseRelationship?.name)),
      ("NSMinCount", .integer(Int64(relationship.minCount))),
      ("NSMaxCount", .integer(Int64(relationship.maxCount))),
      ("NSDeleteRule", .integer(Int64(relationship.deleteRule.rawValue))),
    ]
    if relationship.isOrdered { fields.append(("NSIsOrdered", .boolean(true))) }
    return fields
  }

  // MARK: Predicates

  /// Nil if no form in Apple's archives is known.
  mutating func predicate(_ format: String?) -> ArchiveValue? {
    guard let format, let tree = try? PredicateParser.predicate(format, arguments: []) else {
      // A format that can't be parsed is stored as text.
      return nil
    }
    return builder.predicate(tree)
  }

  mutating func expression(_ format: String?) -> ArchiveValue? {
    guard let format, let tree = try? PredicateParser.expression(format, arguments: []) else {
      return nil
    }
    return builder.expression(tree)
  }
}
