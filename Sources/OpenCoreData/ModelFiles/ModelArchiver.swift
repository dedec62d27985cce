import Foundation

/// Writes a model as a keyed archive, as stores contain it.
///
/// The classes and keys are those of Apple's stores. A few kinds of predicates have no known form;
/// they are also stored as format strings under our own keys, which Apple's reader ignores.
struct ModelArchiver {
  /// The keys of this project.
  enum Key {
    static let derivation = "WatershedDerivationFormat"
    static let filter = "WatershedFilterFormat"
    static let predicate = "WatershedPredicateFormat"
    static let expression = "WatershedExpressionFormat"
    static let rules = "WatershedValidationFormats"
    static let warnings = "WatershedValidationWarnings"
  }

  var builder = KeyedArchiveBuilder()
  var entityPlaces: [ObjectIdentifier: Int] = [:]
  var propertyPlaces: [PropertyPlace: Int] = [:]
  var modelPlace = 0

  /// A property in one entity: a subentity repeats inherited properties.
  struct PropertyPlace: Hashable {
    let entity: ObjectIdentifier
    let property: ObjectIdentifier
  }

  static func archive(of model: NSManagedObjectModel) -> Data {
    var archiver = ModelArchiver()
    archiver.write(model)
    return archiver.builder.data(root: archiver.modelPlace)
  }

  mutating func write(_ model: NSManagedObjectModel) {
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

  func sortedProperties(of entity: NSEntityDescription) -> [NSPropertyDescription] {
    entity.propertiesByName.values.sorted { VersionHash.precedes($0.name, $1.name) }
  }

  func place(
    _ property: NSPropertyDescription,
    in entity: NSEntityDescription
  ) -> PropertyPlace {
    PropertyPlace(entity: ObjectIdentifier(entity), property: ObjectIdentifier(property))
  }

  func reference(_ entity: NSEntityDescription?) -> ArchiveValue {
    guard let entity, let place = entityPlaces[ObjectIdentifier(entity)] else {
      return KeyedArchiveBuilder.null
    }
    return .reference(place)
  }

  // MARK: The model

  mutating func knownKeys(_ entities: [NSEntityDescription]) -> ArchiveValue {
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

  mutating func versionIdentifiers(of model: NSManagedObjectModel) -> ArchiveValue {
    let identifiers = model.versionIdentifiers.compactMap { $0.base as? String }.sorted()
    return builder.set(identifiers.map { builder.string($0) })
  }

  mutating func configurations(
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

  mutating func templates(of model: NSManagedObjectModel) -> ArchiveValue {
    guard !model.requestTemplates.isEmpty else { return KeyedArchiveBuilder.null }
    var pairs: [(key: ArchiveValue, value: ArchiveValue)] = []
    let sorted = model.requestTemplates.sorted { VersionHash.precedes($0.key, $1.key) }
    for (name, template) in sorted {
      let entity = model.entitiesByName[template.entityName]
      pairs.append((builder.string(name), request(template, entity: entity)))
    }
    return builder.dictionary(pairs)
  }

  mutating func request(
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

  mutating func write(_ entity: NSEntityDescription) {
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

  mutating func groups(_ names: [[String]]) -> ArchiveValue {
    builder.array(
      names.map { group in
        builder.array(group.map { builder.string($0) }, isMutable: true)
      },
      isMutable: true
    )
  }

  mutating func userInfo(_ info: [AnyHashable: Any]?) -> ArchiveValue {
    builder.foundation(info ?? [:]) ?? builder.dictionary([], isMutable: false)
  }

  mutating func indexes(of entity: NSEntityDescription) -> ArchiveValue {
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

  mutating func element(
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
}
