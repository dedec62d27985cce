import Foundation

/// Inserts many rows in one transaction, without an object for each.
///
/// ```swift
/// var titles = ["One", "Two", "Three"].makeIterator()
/// let insert = NSBatchInsertRequest(entityName: "Post") { (row: NSMutableDictionary) in
///   guard let title = titles.next() else { return true }
///   row["title"] = title
///   return false
/// }
/// insert.resultType = .objectIDs
/// let inserted = try context.execute(insert) as? NSBatchInsertResult
/// let objectIDs = inserted?.result as? [NSManagedObjectID] ?? []
/// NSManagedObjectContext.mergeChanges(
///   fromRemoteContextSave: [NSInsertedObjectsKey: objectIDs],
///   into: [context]
/// )
/// ```
///
/// The rows are given as an array of dictionaries, by a handler that fills a dictionary, or by a
/// handler that fills an object; a handler returns true at the end, and the values of that last
/// call are ignored. Omitted attributes have their default values; unknown keys and relationships
/// are ignored.
///
/// Run it with `execute(_:)` of a context, on the context's queue; the handler is called there. The
/// context's objects are not updated: validation and `awakeFromInsert()` are skipped, and
/// `mergeChanges(fromRemoteContextSave:into:)` accepts the identifiers of the result. The context's
/// merge policy resolves violations of a uniqueness constraint, row by row: the error policy fails
/// the request with `NSManagedObjectConstraintMergeError` and nothing is inserted,
/// `mergeByPropertyObjectTrump` and `overwrite` give the stored row the new values,
/// `mergeByPropertyStoreTrump` and `rollback` keep the stored values.
///
/// The store's write lock is held while the rows are created, so a handler must not save to the
/// same store. The store's remote-change notification is posted on a background thread.
///
/// **Differs from Core Data:** a value of the wrong type is an error that names the attribute, with
/// nothing inserted.
open class NSBatchInsertRequest: NSPersistentStoreRequest {
  private let named: String?
  private let described: NSEntityDescription?

  /// The rows to insert, each as attribute names and values.
  open var objectsToInsert: [[String: Any]]?
  /// Fills the dictionary of one row; returns true at the end.
  open var dictionaryHandler: ((NSMutableDictionary) -> Bool)?
  /// Fills the object of one row; it is the same object in each call and belongs to no context.
  ///
  /// Returns true at the end.
  open var managedObjectHandler: ((NSManagedObject) -> Bool)?
  /// The kind of the result: a status, the number of rows, or their identifiers.
  open var resultType: NSBatchInsertRequestResultType = .statusOnly

  /// The name of the entity.
  open var entityName: String { named ?? described?.name ?? "" }

  /// The entity; nil if the request was created with a name.
  open var entity: NSEntityDescription? { described }

  /// Creates a request without an entity, which cannot be run.
  @available(*, deprecated, message: "Use init(entityName:objects:).")
  public override convenience init() {
    self.init(entityName: "", objects: [])
  }

  /// Creates a request that inserts rows of the entity of a name.
  public init(entityName: String, objects dictionaries: [[String: Any]]) {
    named = entityName
    described = nil
    objectsToInsert = dictionaries
    super.init()
  }

  /// Creates a request that inserts rows of an entity.
  public init(entity: NSEntityDescription, objects dictionaries: [[String: Any]]) {
    named = nil
    described = entity
    objectsToInsert = dictionaries
    super.init()
  }

  /// Creates a request whose handler fills a dictionary for each row.
  public convenience init(
    entityName: String,
    dictionaryHandler handler: @escaping (NSMutableDictionary) -> Bool
  ) {
    self.init(entityName: entityName, objects: [])
    objectsToInsert = nil
    dictionaryHandler = handler
  }

  /// Creates a request whose handler fills a dictionary for each row.
  public convenience init(
    entity: NSEntityDescription,
    dictionaryHandler handler: @escaping (NSMutableDictionary) -> Bool
  ) {
    self.init(entity: entity, objects: [])
    objectsToInsert = nil
    dictionaryHandler = handler
  }

  /// Creates a request whose handler fills the same object for each row.
  public convenience init(
    entityName: String,
    managedObjectHandler handler: @escaping (NSManagedObject) -> Bool
  ) {
    self.init(entityName: entityName, objects: [])
    objectsToInsert = nil
    managedObjectHandler = handler
  }

  /// Creates a request whose handler fills the same object for each row.
  public convenience init(
    entity: NSEntityDescription,
    managedObjectHandler handler: @escaping (NSManagedObject) -> Bool
  ) {
    self.init(entity: entity, objects: [])
    objectsToInsert = nil
    managedObjectHandler = handler
  }

  /// An insertion of many rows.
  open override var requestType: NSPersistentStoreRequestType { .batchInsertRequestType }

  /// Copies the request; handlers are shared.
  open override func copy(with zone: NSZone? = nil) -> Any {
    let copy =
      described.map { NSBatchInsertRequest(entity: $0, objects: []) }
      ?? NSBatchInsertRequest(entityName: entityName, objects: [])
    copy.affectedStores = affectedStores
    copy.objectsToInsert = objectsToInsert
    copy.dictionaryHandler = dictionaryHandler
    copy.managedObjectHandler = managedObjectHandler
    copy.resultType = resultType
    return copy
  }
}

extension NSBatchInsertRequest: BatchRequest {
  func run(for caller: BatchCaller) throws -> NSPersistentStoreResult {
    let entity = try caller.entity(described, named: entityName)
    let binding = try caller.insertionStore(for: entity, affectedStores)
    let keys = try caller.sqliteStore(binding, self).insertBatch(
      of: entity,
      source,
      policy: caller.policy,
      author: caller.author,
      contextName: caller.contextName
    )
    let result: Any
    switch resultType {
    case .statusOnly: result = NSNumber(value: true)
    case .count: result = NSNumber(value: keys.count)
    case .objectIDs: result = caller.identifiers(keys.references, binding)
    }
    return NSBatchInsertResult(resultType: resultType, result: result)
  }

  private var source: BatchInsertion.Source {
    if let managedObjectHandler { return .objects(managedObjectHandler) }
    if let dictionaryHandler { return .handler(dictionaryHandler) }
    return .dictionaries(objectsToInsert ?? [])
  }
}
