import Foundation

/// Reads attributes, and the common parts of all properties.
extension ModelUnarchiver {
  mutating func readProperties(
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
      // A store's copy of the model repeats inherited properties, as proxies or as copies.
      if inherited[name] != nil || value.className == "_NSPropertyDescriptionProxy" { continue }
      own.append(try property(value, name: name, of: entity))
    }
    entity.properties = own.sorted { VersionHash.precedes($0.name, $1.name) }
  }

  mutating func property(
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
        template(
          $0,
          of: "The fetched property '\(entity.name ?? "").\(name)'",
          entityName: object.string("_NSFetchRequestEntityName")
        )
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

  func readCommon(
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

  func readValidation(_ object: ArchivedObject, into property: NSPropertyDescription) {
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

  func attribute(
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

  func elements(
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

  func defaultValue(_ object: ArchivedObject?, type: NSAttributeType) -> Any? {
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
}
