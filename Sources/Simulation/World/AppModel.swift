import OpenCoreData

/// The model of the simulated app in its two versions; the second renames an entity, an attribute, and a
/// relationship, and adds an attribute.
struct AppModel {
  static let versions = 1...2

  let version: Int

  private var isNew: Bool { version == 2 }

  func name(_ entity: AppEntity) -> String {
    switch entity {
    case .folder: "Folder"
    case .item: isNew ? "Entry" : "Item"
    case .label: "Label"
    case .photo: "Photo"
    }
  }

  /// The attributes with values that the app edits, as the first version names them.
  static func attributes(_ entity: AppEntity) -> [String] {
    switch entity {
    case .folder, .label: ["name"]
    case .item: ["title", "body", "note"]
    case .photo: ["data"]
    }
  }

  /// The name of a property in this version.
  func property(_ name: String) -> String {
    guard isNew else { return name }
    switch name {
    case "title": return "headline"
    case "labels": return "topics"
    default: return name
    }
  }

  /// Whether an attribute, by its first name, has another name in the second version.
  static func isRenamed(_ attribute: String) -> Bool {
    AppModel(version: 2).property(attribute) != attribute
  }

  /// Managed object models are expensive and are never changed.
  static func managed(_ version: Int) -> NSManagedObjectModel { version == 2 ? second : first }

  private static let first = AppModel(version: 1).make()
  private static let second = AppModel(version: 2).make()

  private func make() -> NSManagedObjectModel {
    let folder = entity(.folder, ["key", "name"])
    let item = entity(.item, ["key", property("title"), "body", "note"])
    let label = entity(.label, ["key", "name"])
    let photo = entity(.photo, ["key"])
    photo.properties += [attribute("data", .binaryDataAttributeType)]
    if isNew {
      item.renamingIdentifier = "Item"
      item.attributesByName["headline"]?.renamingIdentifier = "title"
      let rating = attribute("rating", .integer64AttributeType)
      rating.defaultValue = 3
      item.properties += [rating]
    }
    relate(
      (folder, "items", true, .cascadeDeleteRule),
      (item, "folder", false, .nullifyDeleteRule)
    )
    relate(
      (item, property("labels"), true, .nullifyDeleteRule),
      (label, "items", true, .nullifyDeleteRule)
    )
    relate(
      (item, "photo", false, .cascadeDeleteRule),
      (photo, "item", false, .nullifyDeleteRule)
    )
    if isNew { item.relationshipsByName["topics"]?.renamingIdentifier = "labels" }
    let model = NSManagedObjectModel()
    model.entities = [folder, item, label, photo]
    return model
  }

  private func entity(_ kind: AppEntity, _ texts: [String]) -> NSEntityDescription {
    let entity = NSEntityDescription()
    entity.name = name(kind)
    entity.properties = texts.map { attribute($0, .stringAttributeType) }
    return entity
  }

  private func attribute(_ name: String, _ type: NSAttributeType) -> NSAttributeDescription {
    let attribute = NSAttributeDescription()
    attribute.name = name
    attribute.attributeType = type
    return attribute
  }

  private typealias End = (
    entity: NSEntityDescription, name: String, isToMany: Bool, rule: NSDeleteRule
  )

  private func relate(_ left: End, _ right: End) {
    let one = relationship(left, to: right.entity)
    let other = relationship(right, to: left.entity)
    one.inverseRelationship = other
    other.inverseRelationship = one
    left.entity.properties += [one]
    right.entity.properties += [other]
  }

  private func relationship(
    _ end: End,
    to destination: NSEntityDescription
  ) -> NSRelationshipDescription {
    let relationship = NSRelationshipDescription()
    relationship.name = end.name
    relationship.destinationEntity = destination
    relationship.maxCount = end.isToMany ? 0 : 1
    relationship.deleteRule = end.rule
    return relationship
  }
}
