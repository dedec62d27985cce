import Foundation

/// The entity descriptions for fetches of the history.
enum HistoryEntities {
  static let transaction = make(
    "Transaction",
    [
      ("author", .stringAttributeType), ("bundleID", .stringAttributeType),
      ("contextName", .stringAttributeType), ("processID", .stringAttributeType),
      ("timestamp", .dateAttributeType), ("token", .integer64AttributeType),
    ]
  )

  static let change = make(
    "Change",
    [
      ("changeID", .integer64AttributeType), ("changedObjectID", .objectIDAttributeType),
      ("changedEntity", .integer64AttributeType), ("changeType", .integer32AttributeType),
      ("tombstone", .transformableAttributeType),
    ]
  )

  static func request(
    for entity: NSEntityDescription
  ) -> NSFetchRequest<any NSFetchRequestResult> {
    let request = NSFetchRequest<any NSFetchRequestResult>()
    request.entity = entity
    return request
  }

  private static func make(
    _ name: String,
    _ attributes: [(String, NSAttributeType)]
  ) -> NSEntityDescription {
    let entity = NSEntityDescription()
    entity.name = name
    entity.properties = attributes.map { name, type in
      let attribute = NSAttributeDescription()
      attribute.name = name
      attribute.attributeType = type
      return attribute
    }
    let model = NSManagedObjectModel()
    model.entities = [entity]
    // Freezing keeps the model alive with its entity, and makes both safe to share.
    model.freeze()
    return entity
  }
}
