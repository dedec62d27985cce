import Foundation
import OpenCoreData

/// The model of the stores in the fault tests: boxes that own cards, and cards with pictures in
/// external files.
enum FaultModel {
  static let pictureSize = 120_000

  /// The newer version renames the name of a card and gives it a rating; it may have no files.
  static func make(isNewer: Bool = false, hasFiles: Bool = true) -> NSManagedObjectModel {
    let card = entity("Card")
    let name = attribute(isNewer ? "title" : "name", .stringAttributeType)
    name.renamingIdentifier = "name"
    let picture = attribute("picture", .binaryDataAttributeType)
    picture.allowsExternalBinaryDataStorage = hasFiles
    card.properties = [name, attribute("number", .integer64AttributeType), picture]
    if isNewer {
      let rating = attribute("rating", .integer64AttributeType)
      rating.defaultValue = 3
      card.properties.append(rating)
    }
    let box = entity("Box")
    box.properties = [attribute("name", .stringAttributeType)]
    let cards = NSRelationshipDescription()
    cards.name = "cards"
    cards.destinationEntity = card
    cards.maxCount = 0
    cards.deleteRule = .cascadeDeleteRule
    let owner = NSRelationshipDescription()
    owner.name = "box"
    owner.destinationEntity = box
    owner.maxCount = 1
    owner.deleteRule = .nullifyDeleteRule
    owner.isOptional = true
    cards.isOptional = true
    cards.inverseRelationship = owner
    owner.inverseRelationship = cards
    box.properties.append(cards)
    card.properties.append(owner)
    let model = NSManagedObjectModel()
    model.entities = [box, card]
    return model
  }

  private static func entity(_ name: String) -> NSEntityDescription {
    let entity = NSEntityDescription()
    entity.name = name
    return entity
  }

  private static func attribute(
    _ name: String,
    _ type: NSAttributeType
  ) -> NSAttributeDescription {
    let attribute = NSAttributeDescription()
    attribute.name = name
    attribute.attributeType = type
    attribute.isOptional = true
    return attribute
  }

  static var options: [AnyHashable: Any] { [NSPersistentHistoryTrackingKey: true] }

  /// Opens a store, passes a context to the body and closes the store.
  @discardableResult
  static func withStore<Result>(
    _ url: URL,
    model: NSManagedObjectModel = make(),
    type: String = NSSQLiteStoreType,
    options: [AnyHashable: Any] = options,
    _ body: (NSManagedObjectContext) throws -> Result
  ) throws -> Result {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let store = try coordinator.addPersistentStore(
      ofType: type,
      configurationName: nil,
      at: url,
      options: options
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    let result = Swift.Result { try context.performAndWait { try body(context) } }
    try coordinator.remove(store)
    return try result.get()
  }

  @discardableResult
  static func insertCard(
    _ name: String,
    picture: UInt8? = nil,
    in box: NSManagedObject? = nil,
    _ context: NSManagedObjectContext
  ) -> NSManagedObject {
    let card = NSEntityDescription.insertNewObject(forEntityName: "Card", into: context)
    card.setValue(name, forKey: "name")
    card.setValue(1, forKey: "number")
    if let picture {
      card.setValue(Data(repeating: picture, count: pictureSize), forKey: "picture")
    }
    card.setValue(box, forKey: "box")
    return card
  }

  /// Fills a store with two boxes of three cards and a card without a box, in three transactions.
  static func fill(_ url: URL, type: String = NSSQLiteStoreType, first: UInt8) throws {
    try withStore(url, type: type) { context in
      for index in UInt8(0)..<2 {
        let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
        box.setValue("box\(index)", forKey: "name")
        for number in UInt8(0)..<3 {
          let picture = number == 2 ? nil : first + 10 * index + number
          insertCard("card\(index)\(number)", picture: picture, in: box, context)
        }
        try context.save()
      }
      insertCard("card\(first)", picture: first + 50, context)
      try context.save()
    }
  }
}
