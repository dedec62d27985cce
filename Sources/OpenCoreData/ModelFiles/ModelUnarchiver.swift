import Foundation

/// Builds a model from a keyed archive: a compiled model, or the copy in a store.
struct ModelUnarchiver {
  let file: String
  private let archive: KeyedArchive
  private var entities: [Int: NSEntityDescription] = [:]
  private var byName: [String: NSEntityDescription] = [:]
  private var sources: [(object: ArchivedObject, entity: NSEntityDescription)] = []
  /// Where each archived property lives, for inverses; copies of inherited ones included.
  private var owners: [Int: (entity: NSEntityDescription, name: String)] = [:]
  private var relationships: [(object: ArchivedObject, relationship: NSRelationshipDescription)] =
    []

  static func model(from data: Data, file: String) throws -> NSManagedObjectModel {
    do {
      var unarchiver = ModelUnarchiver(file: file, archive: try KeyedArchive(data))
      return try unarchiver.read()
    } catch let error as BinaryPropertyList.DamageError {
      throw ModelFileError(
        .malformed,
        file: file,
        element: "byte \(error.offset)",
        found: error.found,
        expected: error.expected
      )
    } catch let error as KeyedArchive.DamageError {
      throw ModelFileError(
        .malformed,
        file: file,
        found: error.found,
        expected: error.expected
      )
    }
  }

  private init(file: String, archive: KeyedArchive) {
    self.file = file
    self.archive = archive
  }

  private mutating func read() throws -> NSManagedObjectModel {
    let root = archive.root
    guard root.className == "NSManagedObjectModel", let list = root.object("NSEntities") else {
      throw error(
        "the archive holds a \(root.className ?? "plain value")",
        expected: "an NSManagedObjectModel with NSEntities"
      )
    }
    try readEntities(list)
    try linkParents()
    for (object, entity) in sources.sorted(by: { depth($0.entity) < depth($1.entity) }) {
      try readProperties(object, of: entity)
    }
    try linkRelationships()
    for (object, entity) in sources { try readIndexes(object, of: entity) }

    let model = NSManagedObjectModel()
    model.entities = sources.map(\.entity)
    model.versionIdentifiers = Set(
      (root.object("NSVersionIdentifiers")?.elements ?? []).compactMap { $0.string }
    )
    for (key, value) in root.object("NSConfigurations")?.pairs ?? [] {
      guard let name = key.string else { continue }
      let members = value.elements.compactMap {
        entities[$0.index] ?? $0.string.flatMap { byName[$0] }
      }
      model.setEntities(
        members.sorted { VersionHash.precedes($0.name ?? "", $1.name ?? "") },
        forConfigurationName: name
      )
    }
    for (key, value) in root.object("NSFetchRequestTemplates")?.pairs ?? [] {
      if let name = key.string { model.requestTemplates[name] = template(value) }
    }
    return model
  }

  // MARK: Entities

  private mutating func readEntities(_ list: ArchivedObject) throws {
    for (key, object) in list.pairs {
      guard object.className == "NSEntityDescription",
        let name = object.string("NSEntityName") ?? key.string, !name.isEmpty
      else {
        throw error(
          "the entity \(key.string.map { "'\($0)'" } ?? "without a name") is a "
            + "\(object.className ?? "plain value")",
          expected: "an NSEntityDescription with a name"
        )
      }
      guard byName[name] == nil, entities[object.index] == nil else {
        throw error("the entity '\(name)' occurs twice", expected: "names that differ")
      }
      let entity = NSEntityDescription()
      entity.name = name
      entity.rawClassName = object.string("NSClassNameForEntity")
      entity.isAbstract = object.boolean("NSIsAbstract")
      entity.userInfo = userInfo(object)
      entity.versionHashModifier = object.string("NSVersionHashModifier")
      entity.explicitRenamingIdentifier = renamingIdentifier(object, name: name)
      entity.uniquenessConstraints = nameGroups(object.object("NSUniqueTuples"))
      entity.compoundIndexes = nameGroups(object.object("NSCompoundIndexes"))
      entities[object.index] = entity
      byName[name] = entity
      sources.append((object, entity))
    }
  }

  private func linkParents() throws {
    var children: [ObjectIdentifier: [NSEntityDescription]] = [:]
    var parents: [ObjectIdentifier: NSEntityDescription] = [:]
    for (object, entity) in sources {
      guard let parent = object.object("NSSuperentity") else { continue }
      guard let description = entities[parent.index] else {
        throw error(
          "the parent of the entity '\(entity.name ?? "")' is not among the entities",
          expected: "an entity of this model"
        )
      }
      parents[ObjectIdentifier(entity)] = description
      children[ObjectIdentifier(description), default: []].append(entity)
    }
    for (_, entity) in sources {
      var steps = 0
      var current = parents[ObjectIdentifier(entity)]
      while let parent = current {
        steps += 1
        guard steps <= sources.count else {
          throw error(
            "the entity '\(entity.name ?? "")' inherits from itself",
            expected: "parents that end at an entity without one"
          )
        }
        current = parents[ObjectIdentifier(parent)]
      }
    }
    for (_, entity) in sources {
      if let below = children[ObjectIdentifier(entity)] { entity.subentities = below }
    }
  }

  private func depth(_ entity: NSEntityDescription) -> Int { entity.ancestors.count }

  // MARK: Properties

  private mutating func readProperties(
    _ object: ArchivedObject,
    of entity: NSEntityDescription
  ) throws {
    let inherited = entity.superentity?.propertiesByName ?? [:]
    var own: [NSPropertyDescription] = []
    var names: Set<String> = []
    for (key, value) in object.object("NSProperties")?.pairs ?? [] {
      guard let name = key.string ?? value.string("NSPropertyName"), !name.isEmpty else { continue }
      guard names.insert(name).inserted else {
        throw error(
          "the property '\(name)' of the entity '\(entity.name ?? "")' occurs twice",
          expected: "names that differ"
        )
      }
      owners[value.index] = (entity, name)
      // A store's copy lists inherited properties again, as proxies or as copies.
      if inherited[name] != nil || value.className == "_NSPropertyDescriptionProxy" { continue }
      own.append(try property(value, name: name, of: entity))
    }
    entity.properties = own.sorted { VersionHash.precedes($0.name, $1.name) }
  }

  private mutating func property(
    _ object: ArchivedObject,
    name: String,
    of entity: NSEntityDescription
  ) throws -> NSPropertyDescription {
    let property: NSPropertyDescription
    switch object.className {
    case "NSAttributeDescription":
      property = try attribute(object, NSAttributeDescription(), name: name)
    case "NSDerivedAttributeDescription":
      let derived = NSDerivedAttributeDescription()
      derived.derivationSource = expressionSource(
        object,
        "NSDerivationExpression",
        ModelArchiver.Key.derivation
      )
      derived.filteringSource = predicateFormat(
        object,
        "NSFilteringPredicate",
        ModelArchiver.Key.filter
      )
      .map { ParsedPredicateSource(format: $0) }
      property = try attribute(object, derived, name: name)
    case "NSCompositeAttributeDescription":
      let composite = NSCompositeAttributeDescription()
      composite.elements = try elements(of: object, depth: 0)
      property = try attribute(object, composite, name: name)
    case "NSRelationshipDescription":
      property = try relationship(object)
    case "NSFetchedPropertyDescription":
      let fetched = NSFetchedPropertyDescription()
      fetched.requestTemplate = object.object("NSFetchRequest").map {
        template($0, entityName: object.string("_NSFetchRequestEntityName"))
      }
      property = fetched
    default:
      throw error(
        "the property '\(name)' of the entity '\(entity.name ?? "")' is a "
          + "\(object.className ?? "plain value")",
        expected: "an attribute, a relationship or a fetched property"
      )
    }
    readCommon(object, into: property, name: name)
    return property
  }

  private func readCommon(
    _ object: ArchivedObject,
    into property: NSPropertyDescription,
    name: String
  ) {
    property.name = name
    property.isOptional = object.boolean("NSIsOptional")
    property.isTransient = object.boolean("NSIsTransient")
    property.isIndexed = object.boolean("NSIsIndexed")
    property.isIndexedBySpotlight = object.boolean("NSIndexedBySpotlight")
    property.userInfo = userInfo(object)
    property.versionHashModifier = object.string("NSVersionHashModifier")
    property.explicitRenamingIdentifier = renamingIdentifier(object, name: name)
    readValidation(object, into: property)
  }

  private func readValidation(_ object: ArchivedObject, into property: NSPropertyDescription) {
    let kept = object.object(ModelArchiver.Key.rules)?.elements
    let formats =
      kept.map { $0.map(\.string) }
      ?? (object.object("NSValidationPredicates")?.elements ?? [])
      .map { ArchivedPredicateFormat.predicate($0) }
    let warningsKey = kept == nil ? "NSValidationWarnings" : ModelArchiver.Key.warnings
    let warnings = object.object(warningsKey)?.elements ?? []
    var rules: [ValidationRule] = []
    for (index, format) in formats.enumerated() {
      let warning = warnings.indices.contains(index) ? warnings[index] : nil
      let code = warning?.integerValue.flatMap { Int(exactly: $0) }
      guard let format else { continue }
      if code != nil, let attribute = property as? NSAttributeDescription,
        attribute.limits.absorb(format)
      {
        continue
      }
      rules.append(
        ValidationRule(
          format: format,
          warning: code.map { .code($0) } ?? .message(warning?.string ?? "")
        )
      )
    }
    property.validationRules = rules
  }

  private func attribute(
    _ object: ArchivedObject,
    _ attribute: NSAttributeDescription,
    name: String
  ) throws -> NSAttributeDescription {
    let number = object.integer("NSAttributeType") ?? 0
    guard let type = UInt(exactly: number).flatMap(NSAttributeType.init(rawValue:)) else {
      throw error(
        "the attribute '\(name)' has the type \(number)",
        expected: "the number of an attribute type"
      )
    }
    attribute.attributeType = type
    attribute.defaultValue = defaultValue(object.object("NSDefaultValue"), type: type)
    attribute.valueTransformerName = object.string("NSValueTransformerName")
    let className = object.string("NSAttributeValueClassName")
    attribute.explicitValueClassName = className == type.valueClassName ? nil : className
    let flags = object.integer("NSFlagsKey") ?? 0
    attribute.allowsExternalBinaryDataStorage = flags & 4 != 0
    attribute.preservesValueInHistoryOnDeletion = flags & 16 != 0
    attribute.allowsCloudEncryption = object.boolean("NSAllowsCloudEncryption")
    return attribute
  }

  private func elements(
    of object: ArchivedObject,
    depth: Int
  ) throws -> [NSAttributeDescription] {
    guard depth < KeyedArchive.depthLimit, object.visit() else {
      throw error("composite attributes are nested too deeply", expected: "fewer levels")
    }
    return try (object.object("NSElements")?.elements ?? []).compactMap { element in
      guard let name = element.string("NSPropertyName") else { return nil }
      let description: NSAttributeDescription
      if element.className == "NSCompositeAttributeDescription" {
        let composite = NSCompositeAttributeDescription()
        composite.elements = try elements(of: element, depth: depth + 1)
        description = composite
      } else {
        description = NSAttributeDescription()
      }
      let result = try attribute(element, description, name: name)
      readCommon(element, into: result, name: name)
      return result
    }
  }

  private func defaultValue(_ object: ArchivedObject?, type: NSAttributeType) -> Any? {
    guard let value = object?.foundationValue() else { return nil }
    switch (type, value) {
    case (.stringAttributeType, is String), (.dateAttributeType, is Date),
      (.UUIDAttributeType, is UUID), (.URIAttributeType, is URL),
      (.decimalAttributeType, is NSDecimalNumber):
      return value
    case (.decimalAttributeType, let number as NSNumber):
      return NSDecimalNumber(decimal: number.decimalValue)
    case (.integer16AttributeType, is NSNumber), (.integer32AttributeType, is NSNumber),
      (.integer64AttributeType, is NSNumber), (.doubleAttributeType, is NSNumber),
      (.floatAttributeType, is NSNumber):
      return value
    case (.booleanAttributeType, let number as NSNumber):
      return NSNumber(value: number.boolValue)
    case (.binaryDataAttributeType, is Data), (.transformableAttributeType, is Data):
      return value
    default:
      return nil
    }
  }

  // MARK: Relationships

  private mutating func relationship(
    _ object: ArchivedObject
  ) throws -> NSRelationshipDescription {
    let relationship = NSRelationshipDescription()
    // Models built in code have -1 for "no bound", which counts in the hash.
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

  private func linkRelationships() throws {
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

  private func inverse(
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

  private func checkedInverse(
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

  // MARK: Indexes

  private func readIndexes(_ object: ArchivedObject, of entity: NSEntityDescription) throws {
    let properties = entity.propertiesByName
    var indexes: [NSFetchIndexDescription] = []
    for index in object.object("NSFetchIndexDescriptions")?.elements ?? [] {
      let name = index.string("NSIndexName") ?? ""
      var elements: [NSFetchIndexElementDescription] = []
      for element in index.object("NSIndexElements")?.elements ?? [] {
        let propertyName = element.string("NSPropertyName") ?? ""
        let property: NSPropertyDescription
        if let computed = element.object("NSIndexedProperty"),
          computed.className == "NSExpressionDescription"
        {
          property = expressionDescription(computed)
        } else if let known = properties[propertyName] {
          property = known
        } else {
          throw error(
            "the index '\(name)' of the entity '\(entity.name ?? "")' names the unknown property "
              + "'\(propertyName)'",
            expected: "a property of the entity",
            reason: .inconsistent
          )
        }
        let type = element.integer("NSFetchIndexElementType").flatMap(UInt.init(exactly:))
        let description = NSFetchIndexElementDescription(
          property: property,
          collationType: type.flatMap(NSFetchIndexElementType.init(rawValue:)) ?? .binary
        )
        description.isAscending = element.boolean("NSAscending")
        elements.append(description)
      }
      let description = NSFetchIndexDescription(name: name, elements: elements)
      description.partialPredicateSource = predicateFormat(index, "NSPartialIndexPredicate")
        .map { ParsedPredicateSource(format: $0) }
      indexes.append(description)
    }
    entity.indexes = indexes
  }

  private func expressionDescription(_ object: ArchivedObject) -> NSExpressionDescription {
    let description = NSExpressionDescription()
    description.name = object.string("NSPropertyName") ?? ""
    description.expressionSource = expressionSource(
      object,
      "NSExpression",
      ModelArchiver.Key.expression
    )
    description.expressionResultType =
      object.integer("NSExpressionType").flatMap(UInt.init(exactly:))
      .flatMap(NSAttributeType.init(rawValue:)) ?? .undefinedAttributeType
    return description
  }

  /// Our own key has the text as the developer wrote it; Apple's archives have only the objects.
  private func expressionSource(
    _ object: ArchivedObject,
    _ key: String,
    _ ownKey: String
  ) -> ParsedExpressionSource? {
    let format =
      object.string(ownKey)
      ?? object.object(key).flatMap { ArchivedPredicateFormat.expression($0) }
    return format.map { ParsedExpressionSource(format: $0) }
  }

  private func predicateFormat(
    _ object: ArchivedObject,
    _ key: String,
    _ ownKey: String = ModelArchiver.Key.predicate
  ) -> String? {
    object.string(ownKey) ?? object.object(key).flatMap { ArchivedPredicateFormat.predicate($0) }
  }

  // MARK: Shared parts

  /// The bits of `NSFetchRequestFlags`; a plain request has 30.
  static let distinctFlag = 1
  static let subentitiesFlag = 2
  static let propertyValuesFlag = 4
  static let faultsFlag = 8
  static let pendingChangesFlag = 16

  private func template(
    _ object: ArchivedObject,
    entityName: String? = nil
  ) -> FetchRequestTemplate {
    let name =
      object.object("NSEntity")?.string("NSEntityName") ?? entityName
      ?? object.string("NSEntityName") ?? ""
    var template = FetchRequestTemplate(entityName: name)
    template.predicateFormat = predicateFormat(object, "NSPredicate")
    template.resultType = object.integer("NSResultType").flatMap(UInt.init(exactly:)) ?? 0
    template.fetchLimit = max(0, object.integer("NSFetchLimit") ?? 0)
    template.fetchBatchSize = max(0, object.integer("NSBatchSize") ?? 0)
    guard object.boolean("NSHasFetchRequestFlags"),
      let flags = object.integer("NSFetchRequestFlags")
    else { return template }
    template.returnsDistinctResults = flags & Self.distinctFlag != 0
    template.includesSubentities = flags & Self.subentitiesFlag != 0
    template.includesPropertyValues = flags & Self.propertyValuesFlag != 0
    template.returnsObjectsAsFaults = flags & Self.faultsFlag != 0
    template.includesPendingChanges = flags & Self.pendingChangesFlag != 0
    return template
  }

  private func userInfo(_ object: ArchivedObject) -> [AnyHashable: Any]? {
    let info = object.object("NSUserInfo")?.foundationValue() as? [AnyHashable: Any]
    return info?.isEmpty == true ? nil : info
  }

  /// An archive repeats the name where the developer gave no identifier.
  private func renamingIdentifier(_ object: ArchivedObject, name: String) -> String? {
    let identifier = object.string("NSRenamingIdentifier")
    return identifier == name ? nil : identifier
  }

  private func nameGroups(_ object: ArchivedObject?) -> [[String]] {
    (object?.elements ?? []).map { group in
      group.elements.compactMap { $0.string ?? $0.string("NSPropertyName") }
    }
  }

  private func error(
    _ found: String,
    expected: String,
    reason: ModelFileError.Reason = .malformed
  ) -> ModelFileError {
    ModelFileError(reason, file: file, found: found, expected: expected)
  }
}
