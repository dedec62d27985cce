import Foundation

/// Reads the properties, indexes and fetch requests inside an entity's element.
struct ModelXMLPropertyReader {
  let file: String
  private var composites: [String: ModelXMLElement] = [:]

  /// The model editor's names of the attribute types.
  static let typeNames: [String: NSAttributeType] = [
    "Undefined": .undefinedAttributeType,
    "Integer 16": .integer16AttributeType,
    "Integer 32": .integer32AttributeType,
    "Integer 64": .integer64AttributeType,
    "Decimal": .decimalAttributeType,
    "Double": .doubleAttributeType,
    "Float": .floatAttributeType,
    "String": .stringAttributeType,
    "Boolean": .booleanAttributeType,
    "Date": .dateAttributeType,
    "Binary": .binaryDataAttributeType,
    "UUID": .UUIDAttributeType,
    "URI": .URIAttributeType,
    "Transformable": .transformableAttributeType,
    "ObjectID": .objectIDAttributeType,
    "Composite": .compositeAttributeType,
  ]

  init(file: String, composites elements: [ModelXMLElement]) throws {
    self.file = file
    for element in elements {
      let fields = ModelXMLFields(element: element, file: file)
      try fields.allowChildren(["attribute", "compositeElement", "userInfo"])
      let name = try fields.required("name")
      guard composites[name] == nil else {
        throw fields.error(
          "the composite '\(name)' is declared a second time",
          expected: "composite names that differ",
          reason: .inconsistent
        )
      }
      composites[name] = element
    }
  }

  func properties(of entity: ModelXMLElement) throws -> [NSPropertyDescription] {
    var seen: Set<String> = []
    var result: [NSPropertyDescription] = []
    for element in entity.children {
      let property: NSPropertyDescription
      switch element.name {
      case "attribute": property = try attribute(element, inside: [])
      case "relationship": property = try relationship(element)
      case "fetchedProperty": property = try fetchedProperty(element)
      default: continue
      }
      guard seen.insert(property.name).inserted else {
        throw ModelXMLFields(element: element, file: file).error(
          "the property '\(property.name)' is declared a second time in \(entity.label)",
          expected: "property names that differ",
          reason: .inconsistent
        )
      }
      result.append(property)
    }
    return result
  }

  // MARK: Attributes

  private func attribute(
    _ element: ModelXMLElement,
    inside groups: [String]
  ) throws -> NSAttributeDescription {
    let fields = ModelXMLFields(element: element, file: file)
    try fields.allowChildren(["userInfo"])
    let typeName = fields.string("attributeType") ?? "Undefined"
    guard let type = Self.typeNames[typeName] else {
      throw fields.error(
        "attributeType=\"\(typeName)\"",
        expected: "one of " + Self.typeNames.keys.sorted().joined(separator: ", ")
      )
    }
    let attribute: NSAttributeDescription
    if type == .compositeAttributeType {
      attribute = try composite(fields, inside: groups)
    } else if try fields.boolean("derived") {
      let derived = NSDerivedAttributeDescription()
      derived.derivationSource = fields.string("derivationExpression")
        .flatMap { $0.isEmpty ? nil : ParsedExpressionSource(format: $0) }
      attribute = derived
    } else {
      attribute = NSAttributeDescription()
    }
    try readCommon(fields, into: attribute)
    attribute.attributeType = type
    attribute.usesScalarValueType = try fields.boolean("usesScalarValueType")
    attribute.allowsExternalBinaryDataStorage =
      try fields.boolean("allowsExternalBinaryDataStorage")
    attribute.allowsCloudEncryption = try fields.boolean("allowsCloudEncryption")
    attribute.preservesValueInHistoryOnDeletion = try fields.boolean("preserveAfterDeletion")
    attribute.valueTransformerName = fields.string("valueTransformerName")
      .flatMap { $0.isEmpty ? nil : $0 }
    attribute.explicitValueClassName = fields.string("customClassName")
      .flatMap { $0.isEmpty ? nil : $0 }
    attribute.defaultValue = try defaultValue(fields, type: type)
    attribute.limits = try limits(fields, type: type)
    return attribute
  }

  private func composite(
    _ fields: ModelXMLFields,
    inside groups: [String]
  ) throws -> NSCompositeAttributeDescription {
    let composite = NSCompositeAttributeDescription()
    guard let name = fields.string("composite"), !name.isEmpty else { return composite }
    guard let element = composites[name] else {
      throw fields.error(
        "the composite '\(name)' does not exist",
        expected: "the name of a <composite> of this model",
        reason: .inconsistent
      )
    }
    guard !groups.contains(name) else {
      throw fields.error(
        "the composite '\(name)' contains itself",
        expected: "composites that end at plain attributes",
        reason: .inconsistent
      )
    }
    composite.elements = try element.children
      .filter { $0.name == "attribute" || $0.name == "compositeElement" }
      .map { try attribute($0, inside: groups + [name]) }
    return composite
  }

  private func defaultValue(_ fields: ModelXMLFields, type: NSAttributeType) throws -> Any? {
    if type == .dateAttributeType {
      return try fields.number("defaultDateTimeInterval")
        .map { Date(timeIntervalSinceReferenceDate: $0) }
    }
    guard let text = fields.string("defaultValueString") else { return nil }
    switch type {
    case .stringAttributeType:
      return text
    case .undefinedAttributeType, .binaryDataAttributeType, .transformableAttributeType,
      .objectIDAttributeType, .compositeAttributeType:
      // After a change of type the editor keeps the old text.
      return nil
    default:
      guard !text.isEmpty else { return nil }
      guard let value = DefaultValue.parse(text, type: type) else {
        // The editor validates numbers, but accepts any text for these two types (such as "empy").
        if type == .UUIDAttributeType || type == .URIAttributeType { return nil }
        let name = Self.typeNames.first { $0.value == type }?.key ?? ""
        let expected = "a value of the type \(name)"
        warn(fields.error("defaultValueString=\"\(text)\"", expected: expected))
        return DefaultValue.parse(DefaultValue.leadingNumber(text), type: type)
          ?? DefaultValue.parse("0", type: type)
      }
      return value
    }
  }

  /// A limit that another type may have left behind: none where it is no limit of this type.
  private func leftover<Value>(_ read: () throws -> Value?) -> Value? {
    do {
      return try read()
    } catch {
      warn(error)
      return nil
    }
  }

  /// One such attribute must not keep an app from its whole model.
  private func warn(_ error: any Error) {
    StoreLog.warning("\(error); a type that the attribute had before may have left it")
  }

  private func limits(_ fields: ModelXMLFields, type: NSAttributeType) throws -> AttributeLimits {
    var limits = AttributeLimits()
    switch type {
    case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType,
      .decimalAttributeType, .doubleAttributeType, .floatAttributeType:
      limits.minimum = leftover { try fields.decimal("minValueString") }
      limits.maximum = leftover { try fields.decimal("maxValueString") }
    case .stringAttributeType:
      limits.minimumLength = leftover { try fields.integer("minValueString") }
      limits.maximumLength = leftover { try fields.integer("maxValueString") }
      limits.regularExpression = fields.string("regularExpressionString")
        .flatMap { $0.isEmpty ? nil : $0 }
    case .dateAttributeType:
      limits.minimumDate = try fields.number("minDateTimeInterval")
        .map { Date(timeIntervalSinceReferenceDate: $0) }
      limits.maximumDate = try fields.number("maxDateTimeInterval")
        .map { Date(timeIntervalSinceReferenceDate: $0) }
    default:
      break
    }
    return limits
  }

  private func readCommon(
    _ fields: ModelXMLFields,
    into property: NSPropertyDescription
  ) throws {
    property.name = try fields.required("name")
    property.isOptional = try fields.boolean("optional")
    property.isTransient = try fields.boolean("transient")
    property.isIndexed = try fields.boolean("indexed")
    property.isIndexedBySpotlight = try fields.boolean("spotlightIndexingEnabled")
    property.isStoredInExternalRecord = try fields.boolean("storedInTruthFile")
    property.explicitRenamingIdentifier = fields.string("elementID")
    property.versionHashModifier = fields.string("versionHashModifier")
    property.userInfo = try fields.userInfo()
  }

  // MARK: Relationships and fetched properties

  private func relationship(_ element: ModelXMLElement) throws -> NSRelationshipDescription {
    let fields = ModelXMLFields(element: element, file: file)
    try fields.allowChildren(["userInfo"])
    let relationship = NSRelationshipDescription()
    try readCommon(fields, into: relationship)
    _ = try fields.required("destinationEntity")
    let isToMany = try fields.boolean("toMany")
    relationship.maxCount = try fields.integer("maxCount") ?? (isToMany ? 0 : 1)
    relationship.minCount = try fields.integer("minCount") ?? 0
    relationship.isOrdered = try fields.boolean("ordered")
    let rules: [String: NSDeleteRule] = [
      "Nullify": .nullifyDeleteRule, "Cascade": .cascadeDeleteRule, "Deny": .denyDeleteRule,
      "No Action": .noActionDeleteRule,
    ]
    let rule = fields.string("deletionRule") ?? "Nullify"
    guard let deleteRule = rules[rule] else {
      throw fields.error(
        "deletionRule=\"\(rule)\"",
        expected: "Nullify, Cascade, Deny or No Action"
      )
    }
    relationship.deleteRule = deleteRule
    return relationship
  }

  private func fetchedProperty(_ element: ModelXMLElement) throws -> NSFetchedPropertyDescription {
    let fields = ModelXMLFields(element: element, file: file)
    try fields.allowChildren(["fetchRequest", "userInfo"])
    let property = NSFetchedPropertyDescription()
    try readCommon(fields, into: property)
    property.isTransient = true
    property.requestTemplate = try element.children(named: "fetchRequest").first.map(template)
    return property
  }

  func template(_ element: ModelXMLElement) throws -> FetchRequestTemplate {
    let fields = ModelXMLFields(element: element, file: file)
    var template = FetchRequestTemplate(entityName: try fields.required("entity"))
    template.predicateFormat = fields.string("predicateString").flatMap { $0.isEmpty ? nil : $0 }
    template.resultType = UInt(try fields.integer("resultType") ?? 0)
    guard [0, 1, 2, 4].contains(template.resultType) else {
      throw fields.error("resultType=\"\(template.resultType)\"", expected: "0, 1, 2 or 4")
    }
    template.fetchLimit = try fields.integer("fetchLimit") ?? 0
    template.fetchBatchSize = try fields.integer("fetchBatchSize") ?? 0
    // The editor writes all flags that are set, or none for the defaults.
    let flags = [
      "includeSubentities", "includePropertyValues", "includesPendingChanges",
      "returnObjectsAsFaults", "returnDistinctResults",
    ]
    guard flags.contains(where: { fields.string($0) != nil }) else { return template }
    template.includesSubentities = try fields.boolean("includeSubentities")
    template.includesPropertyValues = try fields.boolean("includePropertyValues")
    template.includesPendingChanges = try fields.boolean("includesPendingChanges")
    template.returnsObjectsAsFaults = try fields.boolean("returnObjectsAsFaults")
    template.returnsDistinctResults = try fields.boolean("returnDistinctResults")
    return template
  }

  // MARK: Indexes and constraints

  func index(
    _ element: ModelXMLElement,
    of entity: NSEntityDescription
  ) throws -> NSFetchIndexDescription {
    let fields = ModelXMLFields(element: element, file: file)
    try fields.allowChildren(["fetchIndexElement", "userInfo"])
    let elements = try element.children(named: "fetchIndexElement").map {
      try indexElement($0, of: entity)
    }
    let index = NSFetchIndexDescription(name: try fields.required("name"), elements: elements)
    index.partialPredicateSource = fields.string("partialIndexPredicate")
      .flatMap { $0.isEmpty ? nil : ParsedPredicateSource(format: $0) }
    return index
  }

  private func indexElement(
    _ element: ModelXMLElement,
    of entity: NSEntityDescription
  ) throws -> NSFetchIndexElementDescription {
    let fields = ModelXMLFields(element: element, file: file)
    let type: NSFetchIndexElementType
    switch fields.string("type") ?? "Binary" {
    case "Binary": type = .binary
    case "RTree": type = .rTree
    case let text: throw fields.error("type=\"\(text)\"", expected: "Binary or RTree")
    }
    let property: NSPropertyDescription
    if let format = fields.string("expression"), !format.isEmpty {
      let computed = NSExpressionDescription()
      computed.name = fields.string("property") ?? format
      computed.expressionSource = ParsedExpressionSource(format: format)
      if let name = fields.string("expressionType"), let resultType = Self.typeNames[name] {
        computed.expressionResultType = resultType
      }
      property = computed
    } else {
      let name = try fields.required("property")
      guard let found = entity.propertiesByName[name] else {
        throw unknownProperty(name, of: entity, fields)
      }
      property = found
    }
    let result = NSFetchIndexElementDescription(property: property, collationType: type)
    switch fields.string("order") ?? "ascending" {
    case "ascending": result.isAscending = true
    case "descending": result.isAscending = false
    case let text: throw fields.error("order=\"\(text)\"", expected: "ascending or descending")
    }
    return result
  }

  /// Groups of property names; they are validated if an entity is given.
  func nameGroups(
    _ lists: [ModelXMLElement],
    group: String,
    member: String,
    of entity: NSEntityDescription?
  ) throws -> [[String]] {
    var groups: [[String]] = []
    for list in lists {
      try ModelXMLFields(element: list, file: file).allowChildren([group])
      for element in list.children {
        try ModelXMLFields(element: element, file: file).allowChildren([member])
        groups.append(
          try element.children.map { child in
            let fields = ModelXMLFields(element: child, file: file)
            let name = try fields.required("value")
            if let entity, entity.propertiesByName[name] == nil {
              throw unknownProperty(name, of: entity, fields)
            }
            return name
          }
        )
      }
    }
    return groups
  }

  private func unknownProperty(
    _ name: String,
    of entity: NSEntityDescription,
    _ fields: ModelXMLFields
  ) -> ModelFileError {
    fields.error(
      "the entity '\(entity.name ?? "")' has no property '\(name)'",
      expected: "the name of one of its properties",
      reason: .inconsistent
    )
  }
}
