import Foundation
import OpenCoreData
import WatershedSQLite

/// A part in a warehouse.
final class Part: NSManagedObject {
  private static let codeProperty = ManagedProperty<String?>("code")
  private static let amountProperty = ManagedProperty<Int32>("amount")

  var code: String? {
    get { self[Self.codeProperty] }
    set { self[Self.codeProperty] = newValue }
  }

  var amount: Int32 {
    get { self[Self.amountProperty] }
    set { self[Self.amountProperty] = newValue }
  }

  override func awakeFromInsert() {
    super.awakeFromInsert()
    code = "awake"
  }

  override func validateForInsert() throws {
    throw NSError(domain: "Warehouse", code: 1)
  }
}

/// The tests' model for batches: parts with every kind of attribute, and bins, orders and labels
/// with every delete rule.
enum WarehouseModel {
  static func make(unique: Bool = false) -> NSManagedObjectModel {
    let part = entity("Part", class: Part.self)
    let spare = entity("SparePart", class: Part.self)
    let bin = entity("Bin")
    let order = entity("Order")
    let label = entity("Label")
    let lock = entity("Lock")
    let tag = entity("Tag")

    let upper = NSDerivedAttributeDescription()
    upper.name = "upperCode"
    upper.attributeType = .stringAttributeType
    upper.isOptional = true
    upper.derivationExpression = NSExpression(format: "uppercase:(code)")
    let photo = attribute("photo", .binaryDataAttributeType)
    photo.allowsExternalBinaryDataStorage = true
    photo.preservesValueInHistoryOnDeletion = true
    let code = attribute("code", .stringAttributeType)
    code.preservesValueInHistoryOnDeletion = true
    let notes = attribute("notes", .transformableAttributeType)
    notes.valueTransformerName =
      NSValueTransformerName.secureUnarchiveFromDataTransformerName
      .rawValue
    notes.allowsExternalBinaryDataStorage = true
    notes.preservesValueInHistoryOnDeletion = true
    let partBin = relationship("bin", to: bin, optional: true)
    let partTags = relationship("tags", to: tag, many: true)
    let partLabel = relationship("label", to: label, rule: .cascadeDeleteRule)
    part.properties = [
      code, attribute("amount", .integer32AttributeType, default: NSNumber(value: 7)),
      attribute("small", .integer16AttributeType), attribute("large", .integer64AttributeType),
      attribute("weight", .doubleAttributeType), attribute("ratio", .floatAttributeType),
      attribute("price", .decimalAttributeType), attribute("isFragile", .booleanAttributeType),
      attribute("made", .dateAttributeType), attribute("serial", .UUIDAttributeType),
      attribute("link", .URIAttributeType), attribute("blob", .binaryDataAttributeType),
      photo, notes, upper, partBin, partTags, partLabel,
    ]
    spare.properties = [attribute("model", .stringAttributeType)]
    part.subentities = [spare]
    if unique { part.uniquenessConstraints = [["code"]] }

    let count = NSDerivedAttributeDescription()
    count.name = "partCount"
    count.attributeType = .integer64AttributeType
    count.isOptional = true
    count.derivationExpression = NSExpression(format: "parts.@count")
    let binParts = relationship("parts", to: part, many: true)
    bin.properties = [attribute("name", .stringAttributeType), count, binParts]
    pair(partBin, binParts)

    let orderLines = relationship("lines", to: label, many: true)
    order.properties = [attribute("number", .integer64AttributeType), orderLines]
    let labelOrder = relationship("order", to: order, optional: false)
    let labelPart = relationship("part", to: part)
    label.properties = [attribute("text", .stringAttributeType), labelOrder, labelPart]
    pair(orderLines, labelOrder)
    pair(partLabel, labelPart)

    let lockTags = relationship("tags", to: tag, many: true, rule: .denyDeleteRule)
    lock.properties = [attribute("name", .stringAttributeType), lockTags]
    let tagLock = relationship("lock", to: lock)
    let tagParts = relationship("parts", to: part, many: true)
    tag.properties = [attribute("name", .stringAttributeType), tagLock, tagParts]
    pair(lockTags, tagLock)
    pair(partTags, tagParts)

    let model = NSManagedObjectModel()
    model.entities = [part, spare, bin, order, label, lock, tag]
    return model
  }

  private static func entity(
    _ name: String,
    class type: NSManagedObject.Type? = nil
  ) -> NSEntityDescription {
    let entity = NSEntityDescription()
    entity.name = name
    if let type { entity.managedObjectClassName = NSStringFromClass(type) }
    return entity
  }

  private static func attribute(
    _ name: String,
    _ type: NSAttributeType,
    default value: Any? = nil
  ) -> NSAttributeDescription {
    let attribute = NSAttributeDescription()
    attribute.name = name
    attribute.attributeType = type
    attribute.isOptional = true
    attribute.defaultValue = value
    return attribute
  }

  private static func relationship(
    _ name: String,
    to destination: NSEntityDescription,
    many: Bool = false,
    optional: Bool = true,
    rule: NSDeleteRule = .nullifyDeleteRule
  ) -> NSRelationshipDescription {
    let relationship = NSRelationshipDescription()
    relationship.name = name
    relationship.destinationEntity = destination
    relationship.maxCount = many ? 0 : 1
    relationship.minCount = 0
    relationship.isOptional = optional
    relationship.deleteRule = rule
    return relationship
  }

  private static func pair(_ one: NSRelationshipDescription, _ other: NSRelationshipDescription) {
    one.inverseRelationship = other
    other.inverseRelationship = one
  }
}

/// A warehouse in a temporary folder, which is removed when it is released.
final class Warehouse: @unchecked Sendable {
  // Sendable: immutable, and the container synchronizes itself.
  let folder: URL
  let container: NSPersistentContainer

  init(unique: Bool = false, history: Bool = true, options: [String: NSObject] = [:]) throws {
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("warehouse-\(UUID().uuidString)")
    container = NSPersistentContainer(
      name: "Warehouse",
      managedObjectModel: WarehouseModel.make(unique: unique)
    )
    let description = NSPersistentStoreDescription(
      url: folder.appendingPathComponent("Warehouse.sqlite")
    )
    if history {
      description.setOption(true as NSNumber, forKey: NSPersistentHistoryTrackingKey)
    }
    for (key, value) in options { description.setOption(value, forKey: key) }
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = failure ?? error }
    if let failure { throw failure }
  }

  /// A connection that holds the lock of a store's file, as a process that writes does.
  static func locker(of url: URL) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(path: url.path)
    try connection.execute("BEGIN IMMEDIATE")
    return connection
  }

  var url: URL { folder.appendingPathComponent("Warehouse.sqlite") }

  func context() -> NSManagedObjectContext { container.newBackgroundContext() }

  /// The values of one attribute of all parts, in order of their codes.
  func values(_ key: String, of entity: String = "Part") throws -> [Any?] {
    let context = context()
    return try context.performAndWait {
      let fetch = NSFetchRequest<NSManagedObject>(entityName: entity)
      let order = entity == "Part" || entity == "SparePart" ? "code" : "name"
      fetch.sortDescriptors = [NSSortDescriptor(key: order, ascending: true)]
      return try context.fetch(fetch).map { $0.value(forKey: key) }
    }
  }

  func count(_ entity: String) throws -> Int {
    let context = context()
    return try context.performAndWait {
      try context.count(for: NSFetchRequest<NSManagedObject>(entityName: entity))
    }
  }

  /// All changes of the history, as `insert Part`.
  func history(
    after token: NSPersistentHistoryToken? = nil
  ) throws
    -> [NSPersistentHistoryTransaction]
  {
    let context = context()
    return try context.performAndWait {
      let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
      let result = try context.execute(request) as? NSPersistentHistoryResult
      return result?.result as? [NSPersistentHistoryTransaction] ?? []
    }
  }

  deinit {
    for store in container.persistentStoreCoordinator.persistentStores {
      try? container.persistentStoreCoordinator.remove(store)
    }
    try? FileManager.default.removeItem(at: folder)
  }
}

/// The notifications of one name since it was created.
final class NotificationLog: @unchecked Sendable {
  // Sendable: the lock guards the list.
  private let lock = NSLock()
  private var kept: [Notification] = []
  private var observer: (any NSObjectProtocol)?

  init(_ name: Notification.Name, of object: AnyObject? = nil) {
    observer = NotificationCenter.default.addObserver(forName: name, object: object, queue: nil) {
      [weak self] note in
      guard let self else { return }
      lock.withLock { kept.append(note) }
    }
  }

  var notes: [Notification] { lock.withLock { kept } }

  deinit {
    if let observer { NotificationCenter.default.removeObserver(observer) }
  }
}
