import Foundation

/// Builds a model from a keyed archive: a compiled model, or the copy in a store.
struct ModelUnarchiver {
  let file: String
  let archive: KeyedArchive
  var entities: [Int: NSEntityDescription] = [:]
  var byName: [String: NSEntityDescription] = [:]
  var sources: [(object: ArchivedObject, entity: NSEntityDescription)] = []
  /// The entity and name of each archived property, for inverses; includes copies of inherited
  /// ones.
  var owners: [Int: (entity: NSEntityDescription, name: String)] = [:]
  var relationships: [(object: ArchivedObject, relationship: NSRelationshipDescription)] =
    []

  static func model(from data: Data, file: String) throws -> NSManagedObjectModel {
    try ModelFileError.naming(file) {
      var unarchiver = ModelUnarchiver(file: file, archive: try KeyedArchive(data))
      return try unarchiver.read()
    }
  }

  init(file: String, archive: KeyedArchive) {
    self.file = file
    self.archive = archive
  }

  mutating func read() throws -> NSManagedObjectModel {
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
      guard let name = key.string else { continue }
      model.requestTemplates[name] = template(value, of: "The fetch request '\(name)'")
    }
    return model
  }

  // MARK: Entities

  mutating func readEntities(_ list: ArchivedObject) throws {
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

  func linkParents() throws {
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

  func depth(_ entity: NSEntityDescription) -> Int { entity.ancestors.count }

  // MARK: Shared parts

  /// The bits of `NSFetchRequestFlags`; a plain request has 30.
  static let distinctFlag = 1
  static let subentitiesFlag = 2
  static let propertyValuesFlag = 4
  static let faultsFlag = 8
  static let pendingChangesFlag = 16

  /// Reads a request; its owner is the subject of a warning, "The fetch request 'recent'".
  func template(
    _ object: ArchivedObject,
    of owner: String,
    entityName: String? = nil
  ) -> FetchRequestTemplate {
    let name =
      object.object("NSEntity")?.string("NSEntityName") ?? entityName
      ?? object.string("NSEntityName") ?? ""
    var template = FetchRequestTemplate(entityName: name)
    template.predicateFormat = requestPredicate(object, of: owner)
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

  func userInfo(_ object: ArchivedObject) -> [AnyHashable: Any] {
    object.object("NSUserInfo")?.foundationValue() as? [AnyHashable: Any] ?? [:]
  }

  /// An archive repeats the name if the developer set no identifier.
  func renamingIdentifier(_ object: ArchivedObject, name: String) -> String? {
    let identifier = object.string("NSRenamingIdentifier")
    return identifier == name ? nil : identifier
  }

  func nameGroups(_ object: ArchivedObject?) -> [[String]] {
    (object?.elements ?? []).map { group in
      group.elements.compactMap { $0.string ?? $0.string("NSPropertyName") }
    }
  }

  func error(
    _ found: String,
    expected: String,
    reason: ModelFileError.Reason = .malformed
  ) -> ModelFileError {
    ModelFileError(reason, file: file, found: found, expected: expected)
  }
}
