import Foundation

/// Builds a model from the XML of an `.xcdatamodel`.
///
/// Entities are created first, then linked by name: parents, destinations and inverses may be in
/// any order in the file.
struct ModelXMLReader {
  let file: String
  private let root: ModelXMLElement
  private var entities: [String: NSEntityDescription] = [:]
  private var elements: [String: ModelXMLElement] = [:]
  private var order: [String] = []
  private var properties: ModelXMLPropertyReader

  static func model(from data: Data, file: String) throws -> NSManagedObjectModel {
    var reader = try ModelXMLReader(data: data, file: file)
    return try reader.read()
  }

  private init(data: Data, file: String) throws {
    self.file = file
    root = try ModelXMLParser.parse(data, file: file)
    guard root.name == "model" else {
      throw ModelFileError(
        .malformed,
        file: file,
        line: root.line,
        element: root.label,
        found: "the root element is <\(root.name)>",
        expected: "<model>"
      )
    }
    properties = try ModelXMLPropertyReader(
      file: file,
      composites: root.children(named: "composite")
    )
  }

  private mutating func read() throws -> NSManagedObjectModel {
    let fields = ModelXMLFields(element: root, file: file)
    try fields.allowChildren([
      "entity", "fetchRequest", "configuration", "composite", "elements", "userInfo",
    ])
    try readEntities()
    try linkParents()
    try linkRelationships()
    try readIndexesAndConstraints()

    let model = NSManagedObjectModel()
    model.entities = order.compactMap { entities[$0] }
    if let identifier = fields.string("userDefinedModelVersionIdentifier") {
      model.versionIdentifiers = [identifier]
    }
    model.isUsedWithCloudKit = try fields.boolean("usedWithCloudKit")
    try readConfigurations(into: model)
    for element in root.children(named: "fetchRequest") {
      let fields = ModelXMLFields(element: element, file: file)
      model.requestTemplates[try fields.required("name")] = try template(element)
    }
    try checkFetchedProperties()
    return model
  }

  // MARK: Entities

  private mutating func readEntities() throws {
    for element in root.children(named: "entity") {
      let fields = ModelXMLFields(element: element, file: file)
      let name = try fields.required("name")
      guard entities[name] == nil else {
        throw fields.error(
          "the entity '\(name)' is declared a second time",
          expected: "entity names that differ",
          reason: .inconsistent
        )
      }
      try fields.allowChildren([
        "attribute", "relationship", "fetchedProperty", "fetchIndex", "uniquenessConstraints",
        "compoundIndexes", "userInfo",
      ])
      let entity = NSEntityDescription()
      entity.name = name
      entity.rawClassName = fields.string("representedClassName")
      entity.codeGenerationType = fields.string("codeGenerationType")
      entity.isAbstract = try fields.boolean("isAbstract")
      entity.explicitRenamingIdentifier = fields.string("elementID")
      entity.versionHashModifier = fields.string("versionHashModifier")
      entity.isSyncable = try fields.boolean("syncable", default: true)
      entity.userInfo = try fields.userInfo()
      if let format = fields.string("coreSpotlightDisplayNameExpression"), !format.isEmpty {
        entity.spotlightSource = ParsedExpressionSource(format: format)
      }
      entity.properties = try properties.properties(of: element)
      entities[name] = entity
      elements[name] = element
      order.append(name)
    }
  }

  private func linkParents() throws {
    var children: [String: [NSEntityDescription]] = [:]
    for name in order {
      guard let element = elements[name], let entity = entities[name],
        let parent = element.attributes["parentEntity"], !parent.isEmpty
      else { continue }
      guard entities[parent] != nil else {
        throw ModelXMLFields(element: element, file: file).error(
          "the parent entity '\(parent)' of the entity '\(name)' does not exist",
          expected: "the name of an entity of this model",
          reason: .inconsistent
        )
      }
      children[parent, default: []].append(entity)
    }
    for name in order { try checkParents(of: name) }
    for (parent, children) in children { entities[parent]?.subentities = children }
    for name in order { try checkInheritedNames(of: name) }
  }

  private func checkParents(of name: String) throws {
    var chain = [name]
    var current = elements[name]?.attributes["parentEntity"] ?? ""
    while !current.isEmpty {
      if chain.contains(current) {
        guard let element = elements[name] else { return }
        throw ModelXMLFields(element: element, file: file).error(
          "the entities inherit from each other: "
            + (chain + [current]).map { "'\($0)'" }.joined(separator: " from "),
          expected: "parents that end at an entity without one",
          reason: .inconsistent
        )
      }
      chain.append(current)
      current = elements[current]?.attributes["parentEntity"] ?? ""
    }
  }

  private func checkInheritedNames(of name: String) throws {
    guard let entity = entities[name], let parent = entity.superentity else { return }
    let inherited = parent.propertiesByName
    for property in entity.ownProperties {
      guard let other = inherited[property.name],
        (other is NSAttributeDescription) != (property is NSAttributeDescription),
        let element = elements[name]
      else { continue }
      throw ModelXMLFields(element: element, file: file).error(
        "the property '\(property.name)' of the entity '\(name)' differs in kind from the one "
          + "that it inherits from '\(other.declaringEntity?.name ?? "")'",
        expected: "property names that differ from inherited ones",
        reason: .inconsistent
      )
    }
  }

  // MARK: Relationships

  private func linkRelationships() throws {
    for name in order {
      for element in elements[name]?.children(named: "relationship") ?? [] {
        try linkDestination(of: element, in: name)
      }
    }
    for name in order {
      for element in elements[name]?.children(named: "relationship") ?? [] {
        try linkInverse(of: element, in: name)
      }
    }
  }

  private func relationship(
    _ element: ModelXMLElement,
    in entity: String
  ) -> NSRelationshipDescription? {
    entities[entity]?.ownProperties.first { $0.name == element.attributes["name"] }
      as? NSRelationshipDescription
  }

  private func linkDestination(of element: ModelXMLElement, in entity: String) throws {
    let fields = ModelXMLFields(element: element, file: file)
    let destination = try fields.required("destinationEntity")
    guard let target = entities[destination] else {
      throw fields.error(
        "the destination entity '\(destination)' of '\(entity).\(try fields.required("name"))' "
          + "does not exist",
        expected: "the name of an entity of this model",
        reason: .inconsistent
      )
    }
    relationship(element, in: entity)?.destinationEntity = target
  }

  private func linkInverse(of element: ModelXMLElement, in entity: String) throws {
    guard let inverseName = element.attributes["inverseName"], !inverseName.isEmpty,
      let relationship = relationship(element, in: entity),
      let destination = relationship.destinationEntity, let source = entities[entity]
    else { return }
    let fields = ModelXMLFields(element: element, file: file)
    let owner = "\(destination.name ?? "").\(inverseName)"
    let path = "\(entity).\(relationship.name)"
    if let inverseEntity = element.attributes["inverseEntity"], entities[inverseEntity] == nil {
      throw fields.error(
        "the inverse entity '\(inverseEntity)' of '\(path)' does not exist",
        expected: "inverseEntity=\"\(destination.name ?? "")\"",
        reason: .inconsistent
      )
    }
    guard let inverse = destination.relationshipsByName[inverseName] else {
      throw fields.error(
        "the inverse '\(owner)' of '\(path)' does not exist",
        expected: "the name of a relationship of '\(destination.name ?? "")'",
        reason: .inconsistent
      )
    }
    guard let back = inverse.destinationEntity,
      source.isKindOf(entity: back) || back.isKindOf(entity: source)
    else {
      throw fields.error(
        "the inverse '\(owner)' of '\(path)' leads to "
          + "'\(inverse.destinationEntity?.name ?? "")'",
        expected: "a relationship that leads back to '\(entity)'",
        reason: .inconsistent
      )
    }
    relationship.inverseRelationship = inverse
  }

  // MARK: Indexes

  private func readIndexesAndConstraints() throws {
    for name in order {
      guard let entity = entities[name], let element = elements[name] else { continue }
      entity.indexes = try element.children(named: "fetchIndex").map {
        try properties.index($0, of: entity)
      }
      entity.uniquenessConstraints = try properties.nameGroups(
        element.children(named: "uniquenessConstraints"),
        group: "uniquenessConstraint",
        member: "constraint",
        of: entity
      )
      entity.compoundIndexes = try properties.nameGroups(
        element.children(named: "compoundIndexes"),
        group: "compoundIndex",
        member: "index",
        of: nil
      )
    }
  }

  // MARK: Configurations and fetch requests

  private func readConfigurations(into model: NSManagedObjectModel) throws {
    for element in root.children(named: "configuration") {
      let fields = ModelXMLFields(element: element, file: file)
      try fields.allowChildren(["memberEntity", "userInfo"])
      let name = try fields.required("name")
      let members = try element.children(named: "memberEntity").map { member in
        let fields = ModelXMLFields(element: member, file: file)
        let entity = try fields.required("name")
        guard let description = entities[entity] else {
          throw fields.error(
            "the entity '\(entity)' of the configuration '\(name)' does not exist",
            expected: "the name of an entity of this model",
            reason: .inconsistent
          )
        }
        return description
      }
      model.setEntities(members, forConfigurationName: name)
      if try fields.boolean("usedWithCloudKit") { model.cloudKitConfigurations.insert(name) }
    }
  }

  private func template(_ element: ModelXMLElement) throws -> FetchRequestTemplate {
    let template = try properties.template(element)
    guard entities[template.entityName] != nil else {
      throw ModelXMLFields(element: element, file: file).error(
        "the entity '\(template.entityName)' of the fetch request does not exist",
        expected: "the name of an entity of this model",
        reason: .inconsistent
      )
    }
    return template
  }

  private func checkFetchedProperties() throws {
    for name in order {
      for property in elements[name]?.children(named: "fetchedProperty") ?? [] {
        for request in property.children(named: "fetchRequest") { _ = try template(request) }
      }
    }
  }
}
