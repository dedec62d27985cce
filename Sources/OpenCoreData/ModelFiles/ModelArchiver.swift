import Foundation

/// Writes a model as the keyed archive that a store carries.
///
/// The classes and keys are those of Apple's stores. What they have no form for here (a few kinds of
/// predicate) is kept beside them as format strings under keys of our own, which Apple's reader
/// passes over.
struct ModelArchiver {
  /// Keys of our own.
  enum Key {
    static let derivation = "WatershedDerivationFormat"
    static let filter = "WatershedFilterFormat"
    static let predicate = "WatershedPredicateFormat"
    static let expression = "WatershedExpressionFormat"
    static let rules = "WatershedValidationFormats"
    static let warnings = "WatershedValidationWarnings"
  }

  private var builder = KeyedArchiveBuilder()
  private var entityPlaces: [ObjectIdentifier: Int] = [:]
  private var propertyPlaces: [PropertyPlace: Int] = [:]
  private var modelPlace = 0

  /// A property as it appears in one entity: a sub-entity repeats what it inherits.
  private struct PropertyPlace: Hashable {
    let entity: ObjectIdentifier
    let property: ObjectIdentifier
  }

  static func archive(of model: NSManagedObjectModel) -> Data {
    var archiver = ModelArchiver()
    archiver.write(model)
    return archiver.builder.data(root: archiver.modelPlace)
  }

  private mutating func write(_ model: NSManagedObjectModel) {
    modelPlace = builder.reserve()
    let entities = model.entities.sorted { VersionHash.precedes($0.name ?? "", $1.name ?? "") }
    for entity in entities {
      entityPlaces[ObjectIdentifier(entity)] = builder.reserve()
      for property in sortedProperties(of: entity) {
        propertyPlaces[place(property, in: entity)] = builder.reserve()
      }
    }
    for entity in entities { write(entity) }
    builder.fill(
      modelPlace,
      class: ["NSManagedObjectModel", "NSObject"],
      [
        ("NSEntities", knownKeys(entities)),
        ("NSFetchRequestTemplates", templates(of: model)),
        ("NSVersionIdentifiers", versionIdentifiers(of: model)),
      ] + configurations(of: model)
    )
  }

  private func sortedProperties(of entity: NSEntityDescription) -> [NSPropertyDescription] {
    entity.propertiesByName.values.sorted { VersionHash.precedes($0.name, $1.name) }
  }

  private func place(
    _ property: NSPropertyDescription,
    in entity: NSEntityDescription
  ) -> PropertyPlace {
    PropertyPlace(entity: ObjectIdentifier(entity), property: ObjectIdentifier(property))
  }

  private func reference(_ entity: NSEntityDescription?) -> ArchiveValue {
    guard let entity, let place = entityPlaces[ObjectIdentifier(entity)] else {
      return KeyedArchiveBuilder.null
    }
    return .reference(place)
  }

  // MARK: The model

  private mutating func knownKeys(_ entities: [NSEntityDescription]) -> ArchiveValue {
    let mapping = builder.object(
      class: ["NSKnownKeysMappingStrategy1", "NSKnownKeysMappingStrategy", "NSObject"],
      [
        ("length", .integer(Int64(entities.count))),
        ("keys", builder.array(entities.map { builder.string($0.name ?? "") })),
        ("version", .integer(1)),
      ]
    )
    return builder.object(
      class: [
        "NSKnownKeysDictionary1", "NSKnownKeysDictionary", "NSMutableDictionary",
        "NSDictionary", "NSObject",
      ],
      [
        ("values", builder.array(entities.map { reference($0) })),
        ("searchMapping", mapping),
        ("emptyToken", builder.string("__empty_slot_token_4c24_98dc_ac1e_b773__")),
        ("version", .integer(1)),
      ]
    )
  }

  private mutating func versionIdentifiers(of model: NSManagedObjectModel) -> ArchiveValue {
    let identifiers = model.versionIdentifiers.compactMap { $0.base as? String }.sorted()
    return builder.set(identifiers.map { builder.string($0) })
  }

  private mutating func configurations(
    of model: NSManagedObjectModel
  ) -> [(String, ArchiveValue)] {
    guard !model.configurations.isEmpty else { return [] }
    var pairs: [(key: ArchiveValue, value: ArchiveValue)] = []
    for name in model.configurations {
      let members = model.entities(forConfigurationName: name) ?? []
      pairs.append((builder.string(name), builder.set(members.map { reference($0) })))
    }
    return [("NSConfigurations", builder.dictionary(pairs))]
  }

  private mutating func templates(of model: NSManagedObjectModel) -> ArchiveValue {
    guard !model.requestTemplates.isEmpty else { return KeyedArchiveBuilder.null }
    var pairs: [(key: ArchiveValue, value: ArchiveValue)] = []
    let sorted = model.requestTemplates.sorted { VersionHash.precedes($0.key, $1.key) }
    for (name, template) in sorted {
      let entity = model.entitiesByName[template.entityName]
      pairs.append((builder.string(name), request(template, entity: entity)))
    }
    return builder.dictionary(pairs)
  }

  private mutating func request(
    _ template: FetchRequestTemplate,
    entity: NSEntityDescription?
  ) -> ArchiveValue {
    var flags = 0
    if template.returnsDistinctResults { flags |= ModelUnarchiver.distinctFlag }
    if template.includesSubentities { flags |= ModelUnarchiver.subentitiesFlag }
    if template.includesPropertyValues { flags |= ModelUnarchiver.propertyValuesFlag }
    if template.returnsObjectsAsFaults { flags |= ModelUnarchiver.faultsFlag }
    if template.includesPendingChanges { flags |= ModelUnarchiver.pendingChangesFlag }
    let null = KeyedArchiveBuilder.null
    return builder.object(
      class: ["NSFetchRequest", "NSPersistentStoreRequest", "NSObject"],
      [
        ("NSEntity", reference(entity)),
        ("NSPredicate", predicate(template.predicateFormat) ?? null),
        (Key.predicate, builder.string(template.predicateFormat)),
        ("NSHasFetchRequestFlags", .boolean(true)),
        ("NSFetchRequestFlags", .integer(Int64(flags))),
        ("NSResultType", .integer(Int64(template.resultType))),
        ("NSFetchLimit", .integer(Int64(template.fetchLimit))),
        ("NSFetchOffset", .integer(0)),
        ("NSBatchSize", .integer(Int64(template.fetchBatchSize))),
        ("NSAllocationType", .integer(0)),
        ("NSSortDescriptors", null), ("NSValuesToFetch", null), ("NSValuesToGroupBy", null),
        ("NSHavingPredicate", null), ("NSRelationshipKeyPathsForPrefetching", null),
      ]
    )
  }

  // MARK: Entities

  private mutating func write(_ entity: NSEntityDescription) {
    let properties = sortedProperties(of: entity)
    for property in properties { write(property, in: entity) }
    guard let place = entityPlaces[ObjectIdentifier(entity)] else { return }
    let name = builder.string(entity.name ?? "")
    var fields: [(String, ArchiveValue)] = [
      ("NSEntityName", name),
      ("NSClassNameForEntity", builder.string(entity.rawClassName)),
      ("NSManagedObjectModel", .reference(modelPlace)),
      ("NSSuperentity", reference(entity.superentity)),
      (
        "NSSubentities",
        builder.dictionary(
          entity.subentities.sorted { VersionHash.precedes($0.name ?? "", $1.name ?? "") }
            .map { (builder.string($0.name ?? ""), reference($0)) }
        )
      ),
      (
        "NSProperties",
        builder.dictionary(
          properties.map { property in
            let target = propertyPlaces[self.place(property, in: entity)] ?? 0
            return (builder.string(property.name), .reference(target))
          }
        )
      ),
      ("NSUserInfo", userInfo(entity.userInfo)),
      ("NSVersionHashModifier", builder.string(entity.versionHashModifier)),
      ("NSRenamingIdentifier", builder.string(entity.renamingIdentifier)),
    ]
    if entity.isAbstract { fields.append(("NSIsAbstract", .boolean(true))) }
    if !entity.uniquenessConstraintNames.isEmpty {
      fields.append(("NSUniqueTuples", groups(entity.uniquenessConstraintNames)))
    }
    if !entity.indexes.isEmpty {
      fields.append(("NSFetchIndexDescriptions", indexes(of: entity)))
    }
    if !entity.compoundIndexNames.isEmpty {
      fields.append(("NSCompoundIndexes", groups(entity.compoundIndexNames)))
    }
    builder.fill(place, class: ["NSEntityDescription", "NSObject"], fields)
  }

  private mutating func groups(_ names: [[String]]) -> ArchiveValue {
    builder.array(
      names.map { group in
        builder.array(group.map { builder.string($0) }, isMutable: true)
      },
      isMutable: true
    )
  }

  private mutating func userInfo(_ info: [AnyHashable: Any]?) -> ArchiveValue {
    builder.foundation(info ?? [:]) ?? builder.dictionary([], isMutable: false)
  }

  private mutating func indexes(of entity: NSEntityDescription) -> ArchiveValue {
    var values: [ArchiveValue] = []
    for index in entity.indexes {
      let place = builder.reserve()
      let elements = index.elements.map { element(of: $0, index: place) }
      let format = index.partialPredicateSource?.format
      builder.fill(
        place,
        class: ["NSFetchIndexDescription", "NSObject"],
        [
          ("NSIndexName", builder.string(index.name)),
          ("NSPartialIndexPredicate", predicate(format) ?? KeyedArchiveBuilder.null),
          (Key.predicate, builder.string(format)),
          ("NSIndexElements", builder.array(elements)),
          ("NSEntity", reference(entity)),
        ]
      )
      values.append(.reference(place))
    }
    return builder.array(values, isMutable: true)
  }

  private mutating func element(
    of element: NSFetchIndexElementDescription,
    index: Int
  ) -> ArchiveValue {
    var fields: [(String, ArchiveValue)] = [
      ("NSPropertyName", builder.string(element.propertyName)),
      ("NSFetchIndexElementType", .integer(Int64(element.collationType.rawValue))),
      ("NSFetchIndexDescription", .reference(index)),
    ]
    if element.isAscending { fields.append(("NSAscending", .boolean(true))) }
    if let computed = element.property as? NSExpressionDescription {
      let format = computed.expressionSource?.format
      let description = builder.object(
        class: ["NSExpressionDescription", "NSPropertyDescription", "NSObject"],
        [
          ("_P", .integer(247)), ("NSIsOptional", .boolean(true)),
          ("NSIsReadOnly", .boolean(true)), ("NSEntity", KeyedArchiveBuilder.null),
          ("NSExpressionType", .integer(Int64(computed.expressionResultType.rawValue))),
          ("NSPropertyName", builder.string(computed.name)),
          ("NSRenamingIdentifier", builder.string(computed.name)),
          ("NSExpression", expression(format) ?? KeyedArchiveBuilder.null),
          (Key.expression, builder.string(format)),
        ]
      )
      fields.append(("NSIndexedProperty", description))
    }
    return builder.object(class: ["NSFetchIndexElementDescription", "NSObject"], fields)
  }

  // MARK: Properties

  private mutating func write(_ property: NSPropertyDescription, in entity: NSEntityDescription) {
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

  private mutating func commonFields(
    of property: NSPropertyDescription
  ) -> [(String, ArchiveValue)] {
    let isReadOnly =
      property is NSDerivedAttributeDescription || property is NSFetchedPropertyDescription
    let rules = property.allValidationRules
    let isOrdered = (property as? NSRelationshipDescription)?.isOrdered ?? false
    // The packed flags: the higher bits of the low byte say what is absent.
    var flags: Int64 = 0x01
    if property.isOptional { flags |= 0x02 }
    if isReadOnly { flags |= 0x04 }
    if property.isTransient { flags |= 0x08 }
    if rules.isEmpty { flags |= 0x30 }
    if property.userInfo == nil { flags |= 0x40 }
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
    if property.userInfo != nil { fields.append(("NSUserInfo", userInfo(property.userInfo))) }
    if !rules.isEmpty { fields += validationFields(rules) }
    return fields
  }

  private mutating func validationFields(_ rules: [ValidationRule]) -> [(String, ArchiveValue)] {
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

  private mutating func attributeFields(
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

  private mutating func element(_ attribute: NSAttributeDescription) -> ArchiveValue {
    let common = commonFields(of: attribute)
    let (names, own) = attributeFields(of: attribute)
    return builder.object(class: names, common + own)
  }

  private mutating func relationshipFields(
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

  /// Nil where Apple's archives have no form that we know.
  private mutating func predicate(_ format: String?) -> ArchiveValue? {
    guard let format, let tree = try? PredicateParser.predicate(format, arguments: []) else {
      // A format that does not parse is kept as text all the same.
      return nil
    }
    return builder.predicate(tree)
  }

  private mutating func expression(_ format: String?) -> ArchiveValue? {
    guard let format, let tree = try? PredicateParser.expression(format, arguments: []) else {
      return nil
    }
    return builder.expression(tree)
  }
}
