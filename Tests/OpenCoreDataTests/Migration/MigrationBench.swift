import Foundation
import OpenCoreData
import WatershedSQLite

/// A store file that tests fill with one model and open with the next.
final class MigrationBench {
  let folder: ScratchFolder
  let url: URL

  static var lightweight: [AnyHashable: Any] {
    [
      NSMigratePersistentStoresAutomaticallyOption: true,
      NSInferMappingModelAutomaticallyOption: true,
    ]
  }

  init(_ name: String = "Store.sqlite") throws {
    folder = try ScratchFolder()
    url = folder.file(name)
  }

  static func model(_ entities: NSEntityDescription...) -> NSManagedObjectModel {
    let model = NSManagedObjectModel()
    model.entities = entities
    return model
  }

  /// A mapping of a property to the value of an expression.
  static func property(_ name: String, _ format: String) -> NSPropertyMapping {
    let mapping = NSPropertyMapping()
    mapping.name = name
    mapping.valueExpression = NSExpression(format: format)
    return mapping
  }

  /// Opens the store, runs the body with a context, saves and closes the store.
  @discardableResult
  func open<Result>(
    _ model: NSManagedObjectModel,
    _ options: [AnyHashable: Any] = MigrationBench.lightweight,
    at place: URL? = nil,
    _ body: (NSManagedObjectContext) throws -> Result
  ) throws -> Result {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let store = try coordinator.addPersistentStore(
      ofType: NSSQLiteStoreType,
      configurationName: nil,
      at: place ?? url,
      options: options
    )
    let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    context.persistentStoreCoordinator = coordinator
    let result = try context.performAndWait {
      let result = try body(context)
      if context.hasChanges { try context.save() }
      return result
    }
    try coordinator.remove(store)
    return result
  }

  /// Opens the store and expects an error.
  func refusal(
    _ model: NSManagedObjectModel,
    _ options: [AnyHashable: Any] = MigrationBench.lightweight
  ) -> NSError? {
    do {
      try open(model, options) { _ in }
      return nil
    } catch {
      return error as NSError
    }
  }

  func connect() throws -> SQLiteConnection {
    try SQLiteConnection(path: url.path, mode: .readWrite)
  }

  /// Every row of every table, as text, to compare the file before and after.
  func dump() throws -> [String] {
    let connection = try connect()
    let tables = try connection.query(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
    ) { $0.text(0) }
    return try tables.flatMap { table in
      try connection.query("SELECT * FROM \"\(table)\" ORDER BY 1") { row in
        table + ": " + (0..<row.columnCount).map { "\(row.value($0))" }.joined(separator: "|")
      }
    }
  }
}

extension NSManagedObjectContext {
  /// Creates a context with a private queue for the stores of a coordinator.
  convenience init(of coordinator: NSPersistentStoreCoordinator?) {
    self.init(.privateQueue)
    persistentStoreCoordinator = coordinator
  }

  /// A new context with a private queue that saves into this one.
  func child() -> NSManagedObjectContext {
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = self
    return child
  }

  func insert(_ entity: String, _ values: [String: Any] = [:]) -> NSManagedObject {
    let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: self)
    for (key, value) in values { object.setValue(value, forKey: key) }
    return object
  }

  func all(_ entity: String, by key: String? = nil) throws -> [NSManagedObject] {
    let request = NSFetchRequest<NSManagedObject>(entityName: entity)
    if let key { request.sortDescriptors = [NSSortDescriptor(key: key, ascending: true)] }
    return try fetch(request)
  }
}
