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
  private typealias Parts = ModelParts

  static func make(unique: Bool = false) -> NSManagedObjectModel {
    let upper = NSDerivedAttributeDescription()
    upper.name = "upperCode"
    upper.attributeType = .stringAttributeType
    upper.derivationExpression = NSExpression(format: "uppercase:(code)")
    let photo = Parts.attribute("photo", .binaryDataAttributeType) {
      $0.allowsExternalBinaryDataStorage = true
      $0.preservesValueInHistoryOnDeletion = true
    }
    let notes = Parts.attribute("notes", .transformableAttributeType) {
      $0.valueTransformerName =
        NSValueTransformerName.secureUnarchiveFromDataTransformerName
        .rawValue
      $0.allowsExternalBinaryDataStorage = true
      $0.preservesValueInHistoryOnDeletion = true
    }
    let part = Parts.entity(
      "Part",
      class: Part.self,
      [
        Parts.text("code") { $0.preservesValueInHistoryOnDeletion = true },
        Parts.attribute("amount", .integer32AttributeType) {
          $0.defaultValue = NSNumber(value: 7)
        },
        Parts.attribute("small", .integer16AttributeType), Parts.number("large"),
        Parts.attribute("weight", .doubleAttributeType),
        Parts.attribute("ratio", .floatAttributeType),
        Parts.attribute("price", .decimalAttributeType),
        Parts.attribute("isFragile", .booleanAttributeType),
        Parts.attribute("made", .dateAttributeType), Parts.attribute("serial", .UUIDAttributeType),
        Parts.attribute("link", .URIAttributeType),
        Parts.attribute("blob", .binaryDataAttributeType),
        photo, notes, upper,
      ]
    )
    let spare = Parts.entity("SparePart", class: Part.self, parent: part, [Parts.text("model")])
    if unique { part.uniquenessConstraints = [["code"]] }

    let count = NSDerivedAttributeDescription()
    count.name = "partCount"
    count.attributeType = .integer64AttributeType
    count.derivationExpression = NSExpression(format: "parts.@count")
    let bin = Parts.entity("Bin", [Parts.text("name"), count])
    let order = Parts.entity("Order", [Parts.number("number")])
    let label = Parts.entity("Label", [Parts.text("text")])
    let lock = Parts.entity("Lock", [Parts.text("name")])
    let tag = Parts.entity("Tag", [Parts.text("name")])
    Parts.relate(part, "bin", toMany: false, bin, "parts", toMany: true)
    Parts.relate(label, "order", toMany: false, order, "lines", toMany: true).isOptional = false
    Parts.relate(lock, "tags", toMany: true, rule: .denyDeleteRule, tag, "lock")
    Parts.relate(part, "tags", toMany: true, tag, "parts", toMany: true)
    Parts.relate(part, "label", toMany: false, rule: .cascadeDeleteRule, label, "part")

    let model = NSManagedObjectModel()
    model.entities = [part, spare, bin, order, label, lock, tag]
    return model
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
